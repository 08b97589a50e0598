/**
 * The file FILE-servers beside a store, in which its servers register and share limits. Not in the store itself: there, a
 * lease would wait for long changes and for the disk. It has no index that could be damaged and nothing that must outlive
 * its servers: whatever a power failure loses belongs to processes that it ended.
 */
import { existsSync, realpathSync } from 'node:fs'
import type { MaybePromise } from '../../../core/lib/promise.ts'
import { StoreError } from '../store-error.ts'
import type { Value } from '../row-format.ts'
import { type Database, openDatabase, retryWhileBusy, runWithRetry, type Statement } from './database.ts'

/** A statement, prepared once. */
export type Prepare = <Row extends readonly Value[]>(sql: string) => Statement<Row>

export type ServersFile = ReturnType<typeof createServersFile>

/** @param store Path of the store's file. */
export function createServersFile(store: string) {
  const file = `${realpathSync(store)}-servers`
  let database: Database | undefined
  let opening: Promise<void> | undefined
  let isClosed = false
  const statements = new Map<string, unknown>()

  const prepare: Prepare = <Row extends readonly Value[]>(sql: string) => {
    let statement = statements.get(sql) as Statement<Row> | undefined
    if (statement === undefined) statements.set(sql, statement = database!.statement<Row>(sql))
    return statement
  }

  async function open(): Promise<void> {
    if (isClosed) throw new StoreError('unreachable', 'The store is closed.')
    const opened = openDatabase(file, { create: true })
    try {
      // Other processes hold the lock for microseconds: `runWithRetry` waits without blocking this one.
      opened.exec('PRAGMA busy_timeout = 0')
      await retryWhileBusy(() => opened.exec('PRAGMA journal_mode = WAL'))
      await retryWhileBusy(() => opened.exec(schema))
      if (isClosed) throw new StoreError('unreachable', 'The store is closed.')
      database = opened
    } catch (error) {
      opened.close()
      throw error
    } finally {
      opening = undefined
    }
  }

  return {
    /** Runs one statement, which is repeated while another process writes. Creates the file if it is missing. */
    use<T>(work: (prepare: Prepare) => T): MaybePromise<T> {
      const attempt = () => work(prepare)
      if (database === undefined) return (opening ??= open()).then(() => retryWhileBusy(attempt))
      database.checkFileIdentity()
      return runWithRetry(attempt)
    },

    /** Whether a server has been started on the store. */
    exists: () => database !== undefined || existsSync(file),

    close(): void {
      isClosed = true
      database?.close()
    },
  }
}

/** A change of it needs another name of the file: servers of two versions may run at once. */
const schema = `
  -- The log is synced when it is copied into the file only: every 4,000 pages.
  PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = 4000;
  PRAGMA trusted_schema = OFF;
  PRAGMA mmap_size = 0;
  CREATE TABLE IF NOT EXISTS replica (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    lease_ms INTEGER NOT NULL,
    facts TEXT NOT NULL,
    content TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    pid_namespace TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS quota_window (
    policy TEXT NOT NULL,
    subject TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    taken INTEGER NOT NULL,
    granted INTEGER NOT NULL,
    PRIMARY KEY (policy, subject)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS quota_window_end ON quota_window (ends_at)`
