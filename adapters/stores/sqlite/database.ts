/** The only file that uses the driver, `node:sqlite`, which Node, Bun and Deno provide. */
import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { createClock } from '../../../core/lib/clock.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import type { SqlValue } from '../sql/row-format.ts'
import { BUSY_TIMEOUT_MS, isBusy } from './busy-retry.ts'
import {
  closedError,
  errorMessage,
  lockedError,
  replacedMeanwhileError,
  toStoreError,
  unusableError,
} from './errors.ts'
import { trackFileIdentity } from './file-identity.ts'

/** The clock of this process. Not the date, which may jump and come back. */
export const clock = createClock()

/** How often it retries: SQLite's own pauses grow to 100 ms, and miss the gaps between the steps of an import. */
const busyRetryMs = 4
const sleeper = new Int32Array(new SharedArrayBuffer(4))

/** A statement, prepared on first use. Parameters are numbered `?1`, `?2`, …. */
export interface SqliteStatement<Row> {
  all(...parameters: SqlValue[]): Row[]
  get(...parameters: SqlValue[]): Row | undefined
  /** @returns How many rows were changed. */
  run(...parameters: SqlValue[]): number
}

/**
 * One connection to a file, or a database in memory. Troubles with the file, such as a full disk or damage, are a
 * `StoreError` `unreachable` everywhere. Integers are read as numbers; one beyond ±2^53 throws.
 */
export interface SqliteDatabase {
  /** Runs statements without parameters, separated by semicolons. */
  exec(sql: string): void
  statement<Row extends readonly SqlValue[]>(sql: string): SqliteStatement<Row>
  /** Reads rows one by one, all from the state of the file at the first of them. */
  iterate<Row extends readonly SqlValue[]>(sql: string): Iterable<Row>

  /**
   * Runs `work` on one state of the file, whatever others commit during it. It takes the read lock once, which
   * costs more than a short statement.
   */
  snapshot<T>(work: () => T): T
  /**
   * Runs `work` under the write lock: what it reads is what it changes. Commits when it returns, rolls back when it
   * throws.
   *
   * @param options `wait`: for another process's lock, up to the busy timeout; default true.
   * @throws {StoreError} `unreachable` when another process still holds the lock then, or when the path now leads to
   * another file.
   */
  transaction<T>(work: () => T, options?: { readonly wait: boolean }): T
  /** Runs `work`, whose commits do not wait for the disk: a power failure may undo them. */
  unsynced<T>(work: () => T): T
  /** Runs `work`, whose commits wait for the disk, on a database whose other commits do not. */
  synced<T>(work: () => T): T

  /**
   * Checks every few milliseconds that the path still leads to the open file.
   *
   * @throws {StoreError} `unreachable` when it does not, or when the database is closed.
   */
  checkFileIdentity(): void
  /**
   * Rewrites the file, while others wait: what was moved within it left copies. Or empties the write-ahead log,
   * whose old text stays in its file otherwise.
   *
   * @throws {StoreError} `unreachable` when another process writes or, while the log is emptied, reads.
   */
  eraseRemains(sql: 'VACUUM' | 'PRAGMA wal_checkpoint(TRUNCATE)'): void
  /** Copies one state of the file, whatever others commit during it. `progress` gets the part done, from 0 to 1. */
  copyTo(copy: string, progress: (part: number) => void): Promise<void>
  close(): void
}

/**
 * Opens a connection, and changes nothing in the file.
 *
 * @throws {StoreError} `unreachable` when it cannot be opened, or when it is missing and `create` is false.
 */
export function openDatabase(
  file: string,
  options: { create: boolean; readOnly?: boolean },
): SqliteDatabase {
  const isThere = existsSync(file)
  // Opening a pipe may never end.
  if (!options.create && file !== ':memory:' && !(isThere && statSync(file).isFile())) {
    const reason = isThere ? 'it is not a file' : 'there is no such file'
    throw new StoreError('unreachable', `The store ${file} cannot be opened: ${reason}.`)
  }
  const driver = openDriver(file, options)
  const identity = trackFileIdentity(file)
  const { exec, statement, iterate, synchronous } = createStatements(driver, file)

  /** Closing the last connection removes the write-ahead log, which does not mean that the file is lost. */
  function assertOpen(): void {
    if (!driver.isOpen) throw closedError(file)
  }

  const { snapshot, transaction } = createTransactions(driver, file, () => {
    assertOpen()
    identity.check()
  })

  return {
    exec,
    statement,
    iterate,
    snapshot,
    transaction,
    unsynced: (work) => synchronous('NORMAL', 'FULL', work),
    synced: (work) => synchronous('FULL', 'NORMAL', work),

    checkFileIdentity() {
      assertOpen()
      identity.checkThrottled()
    },

    eraseRemains(sql) {
      assertOpen()
      eraseRemains(driver, file, sql)
    },

    copyTo: (copy, progress) => copyTo(driver, copy, progress),

    close() {
      if (driver.isOpen) driver.close()
    },
  }
}

function eraseRemains(driver: DatabaseSync, file: string, sql: string): void {
  driver.exec('PRAGMA busy_timeout = 0')
  try {
    if (driver.prepare(sql).get()?.['busy'] === 1) throw new Error('database is locked')
  } catch (cause) {
    const detail = `The files of the store ${file} may still contain deleted text`
    throw new StoreError('not_erased', `${detail}: ${errorMessage(cause)}.`, { cause })
  } finally {
    driver.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
  }
}

async function copyTo(driver: DatabaseSync, copy: string, progress: (part: number) => void): Promise<void> {
  const { backup } = await import('node:sqlite')
  // Without a transaction, the copy starts again whenever another process writes.
  driver.exec('BEGIN; SELECT 1 FROM sqlite_schema')
  await backup(driver, copy, {
    rate: 2048,
    progress: ({ totalPages, remainingPages }) => progress(1 - remainingPages / totalPages),
  }).finally(() => driver.exec('COMMIT'))
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

/** A statement whose rows are arrays, which the types of the driver do not know. */
interface ArrayStatement<Row> {
  all(...parameters: SqlValue[]): Row[]
  get(...parameters: SqlValue[]): Row | undefined
  iterate(): Iterable<Row>
}

function createStatements(driver: DatabaseSync, file: string) {
  /** Arrays cost half of what objects cost for the columns of a key. */
  function prepareRead<Row>(sql: string): ArrayStatement<Row> {
    const statement = driver.prepare(sql)
    statement.setReturnArrays(true)
    // The types of node:sqlite describe rows as objects only.
    return statement as unknown as ArrayStatement<Row>
  }

  function prepareChange(sql: string): StatementSync {
    const statement = driver.prepare(sql)
    // The driver also reads the last rowid of a change, which FTS5 can leave beyond ±2^53.
    statement.setReadBigInts(true)
    return statement
  }

  function exec(sql: string): void {
    withStoreErrors(driver, file, 'changed', () => driver.exec(sql))
  }

  return {
    exec,

    synchronous<T>(mode: string, otherwise: string, work: () => T): T {
      exec(`PRAGMA synchronous = ${mode}`)
      try {
        return work()
      } finally {
        exec(`PRAGMA synchronous = ${otherwise}`)
      }
    },

    statement<Row extends readonly SqlValue[]>(sql: string): SqliteStatement<Row> {
      let read: ArrayStatement<Row> | undefined
      let change: StatementSync | undefined
      const prepared = () => read ??= prepareRead<Row>(sql)
      const preparedChange = () => change ??= prepareChange(sql)
      return {
        all: (...parameters) => withStoreErrors(driver, file, 'read', () => prepared().all(...parameters)),
        get: (...parameters) => withStoreErrors(driver, file, 'read', () => prepared().get(...parameters)),
        run: (...parameters) =>
          withStoreErrors(driver, file, 'changed', () => Number(preparedChange().run(...parameters).changes)),
      }
    },

    *iterate<Row extends readonly SqlValue[]>(sql: string): Iterable<Row> {
      // A statement of its own: a second reader of the same statement would restart the first one.
      try {
        yield* prepareRead<Row>(sql).iterate()
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
 * @throws {StoreError} `refused` while another process has it open, and when another has
 * replaced it since it was opened.
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
    // Until now, another process may have locked and replaced it: the lock is then on a file
    // that no longer has the name.
    database.checkFileIdentity()
  } catch {
    throw replacedMeanwhileError(file)
  }
}

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

function openDriver(
  file: string,
  { create, readOnly = false }: { create: boolean; readOnly?: boolean },
): DatabaseSync {
  try {
    // Readable by the owner only: the file contains personal data. SQLite gives the -wal and -shm files the same mode.
    if (create && file !== ':memory:' && !existsSync(file)) closeSync(openSync(file, 'a', 0o600))
    const driver = new DatabaseSync(file, { readOnly })
    driver.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
    return driver
  } catch (error) {
    throw unusableError(file, 'opened', error)
  }
}

/**
 * @throws {StoreError} `unreachable` while another process holds the lock; with `wait`, only after the busy timeout.
 */
function beginImmediate(driver: DatabaseSync, file: string, wait: boolean): void {
  const deadline = performance.now() + (wait ? BUSY_TIMEOUT_MS : 0)
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
    driver.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
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
