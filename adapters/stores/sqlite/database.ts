/** The only file that knows the driver. `node:sqlite` is there on Node, Bun and Deno alike. */
import { closeSync, existsSync, openSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { MaybePromise } from '../../../core/lib/promise.ts'
import { StoreError } from '../store-error.ts'
import { trackFileIdentity } from './file-identity.ts'

/** What a column can hold. Integers are read as numbers; one beyond ±2^53 throws. */
export type Value = string | number | null

/** A statement that is prepared when it is first used, and stays so. Parameters are numbered `?1`, `?2`, …. */
export interface Statement<Row extends readonly Value[]> {
  all(...parameters: Value[]): Row[]
  get(...parameters: Value[]): Row | undefined
  run(...parameters: Value[]): { changes: number; lastId: number }
}

/**
 * One connection to one file. What SQLite can't do with the file, because its disk is full or it is damaged, is a
 * `StoreError` `unreachable` everywhere.
 */
export interface Database {
  /** Runs statements without parameters, separated by semicolons. */
  exec(sql: string): void
  statement<Row extends readonly Value[]>(sql: string): Statement<Row>
  /** Rows as they are asked for, all as they were when the first was. */
  iterate<Row extends readonly Value[]>(sql: string): Iterable<Row>
  /**
   * Runs `work` on one state of the file, whatever others commit meanwhile. It also takes the read lock once: taken
   * by every statement, it costs more than a short statement does.
   */
  snapshot<T>(work: () => T): T
  /**
   * Runs `work` with the write lock held from the start, so that what it reads is what it changes. Commits when it
   * returns, rolls back when it throws, and also when it calls `rollback`.
   *
   * @param options `wait`: for another process's lock, up to the busy timeout; default true.
   * @throws {StoreError} `unreachable` when another process holds the lock for longer than that, or when the path
   * leads to another file by now.
   */
  transaction<T>(work: (rollback: () => void) => T, options?: { readonly wait: boolean }): T
  /**
   * Looks now and then whether the path still leads to the file that is open.
   *
   * @throws {StoreError} `unreachable` when it does not.
   */
  checkFileIdentity(): void
  close(): void
}

/** How long a statement waits for another process's lock. */
export const BUSY_TIMEOUT_MS = 5000

/** How often it tries meanwhile: SQLite's own pauses grow to 100 ms, and miss the moments between steps of an import. */
const BUSY_RETRY_MS = 4
const sleeper = new Int32Array(new SharedArrayBuffer(4))

/**
 * Opens a file, `:memory:` included, and changes nothing in it.
 *
 * @throws {StoreError} `unreachable` when it cannot be opened, or when it is missing and `create` is false.
 */
export function openDatabase(file: string, options: { create: boolean; readOnly?: boolean }): Database {
  if (!options.create && file !== ':memory:' && !existsSync(file)) {
    throw new StoreError('unreachable', `The store ${file} cannot be opened: there is no such file.`)
  }
  const driver = openDriver(file, options)
  const identity = trackFileIdentity(file)

  /** Passes on what the driver says about the file as what it means. */
  function withStoreErrors<T>(what: 'read' | 'changed', work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw toStoreError(error, file, what)
    }
  }

  function prepare(sql: string): StatementSync {
    const statement = driver.prepare(sql)
    // Arrays cost half of what objects do, with as many columns as a key has.
    statement.setReturnArrays(true)
    return statement
  }

  /** FTS5 leaves rowids that no number holds, and the driver throws at those unless told to read bigints. */
  function prepareChange(sql: string): StatementSync {
    const statement = driver.prepare(sql)
    statement.setReadBigInts(true)
    return statement
  }

  const beginRead = driver.prepare('BEGIN')
  const endRead = driver.prepare('COMMIT')

  return {
    exec: (sql) => withStoreErrors('changed', () => driver.exec(sql)),

    statement<Row extends readonly Value[]>(sql: string): Statement<Row> {
      let statement: StatementSync | undefined
      let change: StatementSync | undefined
      const prepared = () => statement ??= prepare(sql)
      const preparedChange = () => change ??= prepareChange(sql)
      return {
        all: (...parameters) =>
          withStoreErrors('read', () => prepared().all(...parameters) as unknown as Row[]),
        get: (...parameters) =>
          withStoreErrors('read', () => prepared().get(...parameters) as unknown as Row | undefined),
        run: (...parameters) =>
          withStoreErrors('changed', () => {
            const { changes, lastInsertRowid } = preparedChange().run(...parameters)
            return { changes: Number(changes), lastId: Number(lastInsertRowid) }
          }),
      }
    },

    *iterate<Row extends readonly Value[]>(sql: string): Iterable<Row> {
      // A statement of its own: two readers of one statement would start each other anew.
      try {
        yield* prepare(sql).iterate() as unknown as Iterable<Row>
      } catch (error) {
        throw toStoreError(error, file, 'read')
      }
    },

    snapshot(work) {
      // A transaction is a snapshot already: an import's callback may ask for a page.
      if (driver.isTransaction) return work()
      withStoreErrors('read', () => beginRead.run())
      try {
        return work()
      } finally {
        // Some errors have ended it by themselves, and are not to be hidden behind another.
        if (driver.isTransaction) endRead.run()
      }
    },

    transaction(work, { wait } = { wait: true }) {
      identity.check()
      beginImmediate(driver, file, wait)
      let commit = true
      try {
        const result = work(() => {
          commit = false
        })
        withStoreErrors('changed', () => driver.exec(commit ? 'COMMIT' : 'ROLLBACK'))
        // What went into a file that nobody can open any more is not acknowledged.
        identity.check()
        return result
      } catch (error) {
        // Some errors, a full disk among them, have rolled back by themselves.
        if (driver.isTransaction) driver.exec('ROLLBACK')
        throw error
      }
    },

    checkFileIdentity: identity.checkThrottled,
    close: () => driver.close(),
  }
}

/** Whether an error means that another process holds a lock. Deno's errors have no code of SQLite's. */
export function isBusy(error: unknown): boolean {
  return error instanceof Error && error.message.includes('database is locked')
}

/** What SQLite says of a file that it can't work with: FULL, IOERR, CORRUPT, READONLY, NOTADB and CANTOPEN. */
const fileTroubles = [
  'database or disk is full',
  'disk I/O error',
  'database disk image is malformed',
  'attempt to write a readonly database',
  'file is not a database',
  'unable to open database file',
  // An index of words has words of its own for a malformed image.
  'fts5: corrupt',
]

/** An error of the driver as one of the store when it is about the file. Any other stays as it is. */
function toStoreError(error: unknown, file: string, what: 'read' | 'changed'): unknown {
  const reason = errorMessage(error)
  if (error instanceof StoreError || !fileTroubles.some((trouble) => reason.includes(trouble))) return error
  return new StoreError('unreachable', `The store ${file} cannot be ${what}: ${reason}.`, { cause: error })
}

/** What an error of the driver, or any other, says. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function openDriver(
  file: string,
  { create, readOnly = false }: { create: boolean; readOnly?: boolean },
): DatabaseSync {
  try {
    // Only for the owner: the file holds personal data. SQLite gives the -wal and -shm files the same mode.
    if (create && file !== ':memory:' && !existsSync(file)) closeSync(openSync(file, 'a', 0o600))
    const driver = new DatabaseSync(file, { readOnly })
    driver.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
    return driver
  } catch (error) {
    throw new StoreError('unreachable', `The store ${file} cannot be opened: ${errorMessage(error)}.`, {
      cause: error,
    })
  }
}

function beginImmediate(driver: DatabaseSync, file: string, wait: boolean): void {
  try {
    driver.exec('PRAGMA busy_timeout = 0')
    const deadline = Date.now() + (wait ? BUSY_TIMEOUT_MS : 0)
    while (!tryBegin(driver, deadline)) Atomics.wait(sleeper, 0, 0, BUSY_RETRY_MS)
  } catch (error) {
    if (!isBusy(error)) throw toStoreError(error, file, 'changed')
    const waited = wait ? ` and has been for ${BUSY_TIMEOUT_MS / 1000} seconds` : ''
    throw new StoreError(
      'unreachable',
      `The store ${file} cannot be changed: another process is writing to it${waited}.`,
      { cause: error },
    )
  } finally {
    driver.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
  }
}

/** @throws what the driver throws, but while the lock is taken only after the deadline. */
function tryBegin(driver: DatabaseSync, deadline: number): boolean {
  try {
    driver.exec('BEGIN IMMEDIATE')
    return true
  } catch (error) {
    if (!isBusy(error) || Date.now() >= deadline) throw error
    return false
  }
}

const maxPauseMs = 16

/**
 * Runs a transaction at once when no other process holds the write lock. Otherwise tries again for as long as
 * `Database.transaction` would wait, and lets the process answer other requests meanwhile.
 *
 * @throws {StoreError} `unreachable` when the lock stays taken.
 */
export function transactionWithRetry<T>(database: Database, work: () => T): MaybePromise<T> {
  try {
    return database.transaction(work, { wait: false })
  } catch (error) {
    if (!isLockTaken(error)) throw error
    return retryTransaction(database, work)
  }
}

async function retryTransaction<T>(database: Database, work: () => T): Promise<T> {
  const deadline = Date.now() + BUSY_TIMEOUT_MS
  for (let pause = 1;; pause = Math.min(pause * 2, maxPauseMs)) {
    await new Promise((resolve) => setTimeout(resolve, pause))
    try {
      return database.transaction(work, { wait: false })
    } catch (error) {
      if (!isLockTaken(error) || Date.now() > deadline) throw error
    }
  }
}

function isLockTaken(error: unknown): boolean {
  return error instanceof StoreError && isBusy(error.cause)
}

/** `?1, ?2, …`, one for each column. */
export function placeholders(columns: readonly string[]): string {
  return columns.map((_, index) => `?${index + 1}`).join(', ')
}

/** Inserts a row, or updates the row with the same key: the first `keyLength` columns. */
export function upsertSql(table: string, columns: readonly string[], keyLength: number = 1): string {
  const updates = columns.slice(keyLength).map((column) => `${column} = excluded.${column}`)
  return `INSERT INTO ${table} (${columns}) VALUES (${placeholders(columns)})
    ON CONFLICT (${columns.slice(0, keyLength)}) DO UPDATE SET ${updates}`
}
