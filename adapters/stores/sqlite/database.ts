/** The only file that uses the driver, `node:sqlite`, which Node, Bun and Deno provide. */
import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { Remedy } from '../../../core/admin/error.ts'
import { createClock } from '../../../core/lib/clock.ts'
import { delay, type MaybePromise } from '../../../core/lib/promise.ts'
import type { SqlValue } from '../sql/row-format.ts'
import { StoreError } from '../sql/store-error.ts'
import { trackFileIdentity } from './file-identity.ts'

/** Of this process. Not the date, which may jump and come back. */
export const clock = createClock()

/** How long a statement waits for another process's lock. */
const busyTimeoutMs = 5000

/** How often it retries: SQLite's own pauses grow to 100 ms, and miss the gaps between the steps of an import. */
const busyRetryMs = 4
const sleeper = new Int32Array(new SharedArrayBuffer(4))

export type SqliteDatabase = ReturnType<typeof openDatabase>

/**
 * Opens one connection to a file, or `:memory:`, and changes nothing in it. Troubles with the file, such as a full disk or
 * damage, are a `StoreError` `unreachable` everywhere. Integers are read as numbers; one beyond ±2^53 throws.
 *
 * @throws {StoreError} `unreachable` when it cannot be opened, or when it is missing and `create` is false.
 */
export function openDatabase(file: string, options: { create: boolean; readOnly?: boolean }) {
  const isThere = existsSync(file)
  // Opening a pipe may never end.
  if (!options.create && file !== ':memory:' && !(isThere && statSync(file).isFile())) {
    const reason = isThere ? 'it is not a file' : 'there is no such file'
    throw new StoreError('unreachable', `The store ${file} cannot be opened: ${reason}.`)
  }
  const driver = openDriver(file, options)
  const identity = trackFileIdentity(file)
  const statements = createStatements(driver, file)

  /** Closing the last connection removes the write-ahead log, which is no loss of the file. */
  function assertOpen(): void {
    if (!driver.isOpen) throw closedError(file)
  }

  return {
    ...statements,
    ...createTransactions(driver, file, () => {
      assertOpen()
      identity.check()
    }),

    /**
     * Checks every few milliseconds that the path still leads to the open file.
     *
     * @throws {StoreError} `unreachable` when it does not, or when the database is closed.
     */
    checkFileIdentity(): void {
      assertOpen()
      identity.checkThrottled()
    },

    /** Runs `work`, whose commits do not wait for the disk: a power failure may undo them. */
    unsynced: <T>(work: () => T): T => statements.synchronous('NORMAL', 'FULL', work),

    /** The same for a database whose commits do not wait for the disk, other than these. */
    synced: <T>(work: () => T): T => statements.synchronous('FULL', 'NORMAL', work),

    /**
     * Rewrites the file, while others wait: what was moved within it left copies. Or empties the write-ahead log, whose old
     * text stays in its file otherwise.
     *
     * @throws {StoreError} `unreachable` when another process writes or, while the log is emptied, reads.
     */
    eraseRemains(sql: 'VACUUM' | 'PRAGMA wal_checkpoint(TRUNCATE)'): void {
      assertOpen()
      driver.exec('PRAGMA busy_timeout = 0')
      try {
        if (driver.prepare(sql).get()?.['busy'] === 1) throw new Error('database is locked')
      } catch (cause) {
        const detail = `The files of the store ${file} may still contain deleted text`
        throw new StoreError('unreachable', `${detail}: ${errorMessage(cause)}.`, { cause })
      } finally {
        driver.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
      }
    },

    /** Copies one state of the file, whatever others commit meanwhile. `progress` gets the part done, from 0 to 1. */
    async copyTo(copy: string, progress: (part: number) => void): Promise<void> {
      const { backup } = await import('node:sqlite')
      // Without a transaction, the copy starts again whenever another process writes.
      driver.exec('BEGIN; SELECT 1 FROM sqlite_schema')
      await backup(driver, copy, {
        rate: 2048,
        progress: ({ totalPages, remainingPages }) => progress(1 - remainingPages / totalPages),
      }).finally(() => driver.exec('COMMIT'))
    },

    close(): void {
      if (driver.isOpen) driver.close()
    },
  }
}

/** Runs `work` on a connection that only reads the file. */
export function withReader<T>(file: string, work: (database: SqliteDatabase) => T): T {
  const database = openDatabase(file, { create: false, readOnly: true })
  try {
    return work(database)
  } finally {
    database.close()
  }
}

function createStatements(driver: DatabaseSync, file: string) {
  function prepare(sql: string, isChange = false): StatementSync {
    const statement = driver.prepare(sql)
    // The driver also reads the last rowid of a change, which FTS5 can leave beyond ±2^53.
    if (isChange) statement.setReadBigInts(true)
    // Arrays cost half of what objects cost for the columns of a key.
    else statement.setReturnArrays(true)
    return statement
  }

  return {
    /** Runs statements without parameters, separated by semicolons. */
    exec: (sql: string): void => withStoreErrors(driver, file, 'changed', () => driver.exec(sql)),

    synchronous<T>(mode: string, otherwise: string, work: () => T): T {
      this.exec(`PRAGMA synchronous = ${mode}`)
      try {
        return work()
      } finally {
        this.exec(`PRAGMA synchronous = ${otherwise}`)
      }
    },

    /** A statement, prepared on first use. Parameters are numbered `?1`, `?2`, …. */
    statement<Row extends readonly SqlValue[]>(sql: string) {
      let statement: StatementSync | undefined
      let change: StatementSync | undefined
      const prepared = () => statement ??= prepare(sql)
      const preparedChange = () => change ??= prepare(sql, true)
      return {
        all: (...parameters: SqlValue[]) =>
          withStoreErrors(driver, file, 'read', () => prepared().all(...parameters) as unknown as Row[]),
        get: (...parameters: SqlValue[]) =>
          withStoreErrors(
            driver,
            file,
            'read',
            () => prepared().get(...parameters) as unknown as Row | undefined,
          ),
        /** @returns How many rows were changed. */
        run: (...parameters: SqlValue[]) =>
          withStoreErrors(driver, file, 'changed', () => Number(preparedChange().run(...parameters).changes)),
      }
    },

    /** Reads rows one by one, all from the state of the file at the first of them. */
    *iterate<Row extends readonly SqlValue[]>(sql: string): Iterable<Row> {
      // A statement of its own: a second reader of the same statement would restart the first one.
      try {
        yield* prepare(sql).iterate() as unknown as Iterable<Row>
      } catch (error) {
        throw toStoreError(driver, error, file, 'read')
      }
    },
  }
}

function createTransactions(driver: DatabaseSync, file: string, checkFileIdentity: () => void) {
  const beginRead = driver.prepare('BEGIN')
  const endRead = driver.prepare('COMMIT')

  return {
    /**
     * Runs `work` on one state of the file, whatever others commit meanwhile. It takes the read lock once, which costs
     * more than a short statement.
     */
    snapshot<T>(work: () => T): T {
      // A transaction is a snapshot already: the callback of an import may list profiles.
      if (driver.isOpen && driver.isTransaction) return work()
      withStoreErrors(driver, file, 'read', () => beginRead.run())
      try {
        return work()
      } finally {
        // Some errors have ended the transaction already; a second error would hide the first.
        if (driver.isTransaction) endRead.run()
      }
    },

    /**
     * Runs `work` under the write lock: what it reads is what it changes. Commits when it returns, rolls back when it
     * throws.
     *
     * @param options `wait`: for another process's lock, up to the busy timeout; default true.
     * @throws {StoreError} `unreachable` when another process still holds the lock then, or when the path now leads to
     * another file.
     */
    transaction<T>(work: () => T, { wait } = { wait: true }): T {
      checkFileIdentity()
      beginImmediate(driver, file, wait)
      try {
        const result = work()
        withStoreErrors(driver, file, 'changed', () => driver.exec('COMMIT'))
        // A commit to a deleted or replaced file is not acknowledged.
        checkFileIdentity()
        return result
      } catch (error) {
        // Some errors, such as a full disk, have rolled back already.
        if (driver.isTransaction) driver.exec('ROLLBACK')
        throw error
      }
    },
  }
}

/**
 * Locks a file, so that no other process can open it until it is closed.
 *
 * @throws {StoreError} `refused` while another process has it open, and when another has replaced it since it was opened.
 */
export function lockFile(database: SqliteDatabase, file: string): void {
  try {
    // With write-ahead logging, each process that has used the file holds a lock on it until it closes the file.
    database.exec('PRAGMA busy_timeout = 500; PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT')
  } catch (error) {
    if (!isBusy(error)) throw error
    throw new StoreError('refused', `Another process has ${file} open: stop it first.`)
  }
  try {
    // Until now, another process may have locked and replaced it: the lock is then on a file that no longer has the name.
    database.checkFileIdentity()
  } catch {
    throw replacedMeanwhileError(file)
  }
}

export function replacedMeanwhileError(file: string): StoreError {
  return new StoreError('refused', `Another process has created or replaced ${file} meanwhile: start again.`)
}

/** Whether another process holds a lock. On Deno, errors carry no SQLite code. */
function isBusy(error: unknown): boolean {
  return error instanceof Error && (error.message.includes('database is locked') || isBusy(error.cause))
}

/** SQLite's messages for FULL, IOERR, CORRUPT, READONLY, NOTADB and CANTOPEN. */
const fileTroubles = [
  'database or disk is full',
  'disk I/O error',
  'database disk image is malformed',
  'attempt to write a readonly database',
  'file is not a database',
  'unable to open database file',
  // CORRUPT in a full-text index.
  'fts5: corrupt',
]

function withStoreErrors<T>(
  driver: DatabaseSync,
  file: string,
  what: 'read' | 'changed',
  work: () => T,
): T {
  try {
    return work()
  } catch (error) {
    throw toStoreError(driver, error, file, what)
  }
}

/** Turns an error about the file or its values into a `StoreError`, and returns any other as it is. */
function toStoreError(
  driver: DatabaseSync,
  error: unknown,
  file: string,
  what: 'read' | 'changed',
): unknown {
  if (!driver.isOpen) return closedError(file)
  const reason = errorMessage(error)
  // An integer beyond ±2^53, which only another program can have written.
  if (error instanceof RangeError && what === 'read') return unusableError(file, what, error)
  if (error instanceof StoreError || !fileTroubles.some((trouble) => reason.includes(trouble))) return error
  // SQLITE_CORRUPT_VTAB: only search has virtual tables.
  const index = (error as { readonly errcode?: number }).errcode === 267 ? 'fts5' : reason
  return unusableError(file, what, error, searchIndexRemedy(index, file).remedy)
}

export function closedError(file: string): StoreError {
  return new StoreError('unreachable', `The store ${file} is closed.`)
}

export function unusableError(
  file: string,
  what: 'opened' | 'read' | 'changed',
  cause: unknown,
  remedy?: Remedy,
): StoreError {
  const message = `The store ${file} cannot be ${what}: ${errorMessage(cause)}.`
  return new StoreError('unreachable', message, { cause, ...(remedy && { remedy }) })
}

/** The remedy for damage of the search index. */
export function searchIndexRemedy(damage: string, file: string): { readonly remedy?: Remedy } {
  if (!/fts5/i.test(damage)) return {}
  const args = ['--from', `sqlite:${file}`, '--to', `sqlite:${file}.mended`]
  return { remedy: { purpose: 'To build its search index again', command: 'store copy', args } }
}

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function openDriver(
  file: string,
  { create, readOnly = false }: { create: boolean; readOnly?: boolean },
): DatabaseSync {
  try {
    // Readable by the owner only: the file contains personal data. SQLite gives the -wal and -shm files the same mode.
    if (create && file !== ':memory:' && !existsSync(file)) closeSync(openSync(file, 'a', 0o600))
    const driver = new DatabaseSync(file, { readOnly })
    driver.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    return driver
  } catch (error) {
    throw unusableError(file, 'opened', error)
  }
}

/** @throws {StoreError} `unreachable` while another process holds the lock; with `wait`, only after the busy timeout. */
function beginImmediate(driver: DatabaseSync, file: string, wait: boolean): void {
  const deadline = performance.now() + (wait ? busyTimeoutMs : 0)
  driver.exec('PRAGMA busy_timeout = 0')
  try {
    for (;;) {
      try {
        return driver.exec('BEGIN IMMEDIATE')
      } catch (error) {
        if (!isBusy(error)) throw toStoreError(driver, error, file, 'changed')
        if (performance.now() >= deadline) throw lockedError(file, wait, error)
      }
      Atomics.wait(sleeper, 0, 0, busyRetryMs)
    }
  } finally {
    driver.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
  }
}

function lockedError(file: string, hasWaited: boolean, cause: unknown): StoreError {
  const waited = hasWaited ? ` and has been for ${busyTimeoutMs / 1000} seconds` : ''
  return new StoreError(
    'unreachable',
    `The store ${file} cannot be changed: another process is writing to it${waited}.`,
    { cause },
  )
}

/**
 * Runs `work` at once, and retries while another process holds the lock: for as long as a statement would wait, but
 * without blocking this process. A transaction in `work` must not wait for the lock itself.
 *
 * @throws {StoreError} `unreachable` when the other process keeps the lock.
 */
export function runWithRetry<T>(work: () => T): MaybePromise<T> {
  try {
    return work()
  } catch (error) {
    if (!isBusy(error)) throw error
    return retryWhileBusy(work)
  }
}

/** Repeats `work` while another process holds the lock, for as long as a statement would wait. */
export async function retryWhileBusy<T>(work: () => T): Promise<T> {
  const deadline = performance.now() + busyTimeoutMs
  for (let pause = 1;; pause = Math.min(pause * 2, 16)) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error
    }
    await delay(pause)
  }
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
