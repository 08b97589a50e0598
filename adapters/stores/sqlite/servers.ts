/**
 * The file STORE-servers, in which the processes that serve a store register and share limits. In the store itself,
 * they would wait for long changes and for the disk. What a power failure loses here belongs to processes that it
 * ended. For a store in memory, it is a second database in memory.
 */
import { existsSync, readlinkSync, realpathSync } from 'node:fs'
import process from 'node:process'
import type { Clock } from '../../../core/lib/clock.ts'
import { ignoreFailure, type MaybePromise } from '../../../core/lib/promise.ts'
import type { Revision } from '../../../core/ports/facts.ts'
import type { ReplicaRegistry } from '../../../core/ports/replicas.ts'
import type { SqlQuery } from '../sql/database.ts'
import { createQuotaStore } from '../sql/quotas.ts'
import {
  createRegistration,
  LIVE_GRACE_MS,
  type ProgressRow,
  REPLICA_RETENTION_MS,
  type ReplicaIdentity,
  type ReplicaStatements,
  toProgress,
} from '../sql/replicas.ts'
import type { SqlValue } from '../sql/row-format.ts'
import { retryWhileBusy, runWithRetry } from './busy-retry.ts'
import { clock, openDatabase, type SqliteDatabase } from './database.ts'
import { closedError } from './errors.ts'
import type { Revisions } from './revisions.ts'
import { createQuery, DIALECT, type SqliteQuery } from './sql-database.ts'

/** A change of it needs another name of the file, as servers of two versions may run at once. */
const schema = `
  -- Other processes hold the lock for microseconds, and waiting for it must not block this one.
  PRAGMA busy_timeout = 0;
  PRAGMA journal_mode = WAL;
  -- The log is synced only when it is copied into the file.
  PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = 4000;
  CREATE TABLE IF NOT EXISTS replica (
    id TEXT PRIMARY KEY, name TEXT, lease_ms INTEGER, facts TEXT, content TEXT,
    seen_at INTEGER, pid INTEGER, pid_namespace TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS quota_term (
    policy TEXT, subject TEXT, opened_at INTEGER, ends_at INTEGER, taken INTEGER, granted INTEGER,
    quota INTEGER, term INTEGER, held INTEGER, PRIMARY KEY (policy, subject)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS quota_term_end ON quota_term (ends_at)`

const confirmSql = `
  INSERT INTO replica (id, name, lease_ms, facts, content, seen_at, pid, pid_namespace)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
  ON CONFLICT (id) DO UPDATE SET facts = excluded.facts, content = excluded.content, seen_at = excluded.seen_at`
const listSql = `
  SELECT pid, pid_namespace, id, name, lease_ms, facts, content, 0 FROM replica
  WHERE seen_at + lease_ms > $1 ORDER BY id`
const removeSql = 'DELETE FROM replica WHERE id = $1 OR seen_at + lease_ms <= $2'
/** A window that a restart must not forget. */
const longWindowSeconds = 3_600

/**
 * The database of the file, which is opened when it is first used, and again when it was deleted or replaced.
 *
 * @param quotaClock The clock of windows, if it is not this machine's.
 */
function createServersDatabase(store: string, quotaClock: Pick<Clock, 'now'> | undefined) {
  const isInMemory = store === ':memory:'
  const file = isInMemory ? store : `${realpathSync(store)}-servers`
  let database: SqliteDatabase | undefined
  let query: SqliteQuery
  let opening: Promise<void> | undefined
  let isClosed = false

  async function open(): Promise<void> {
    const opened = openDatabase(file, { create: true })
    await retryWhileBusy(() => opened.exec(schema))
    query = createQuery(opened, quotaClock)
    database = opened
    if (isClosed) close()
  }

  function close(): void {
    isClosed = true
    database?.close()
  }

  /** Repeats `work`, which changes one row, while another process writes. Creates the file if it is missing. */
  function use<T>(work: (query: SqliteQuery) => T): MaybePromise<T> {
    if (isClosed) throw closedError(store)
    const attempt = () => work(query)
    try {
      database?.checkFileIdentity()
    } catch {
      // It was deleted or replaced.
      database!.close()
      database = undefined
    }
    if (database === undefined) {
      return (opening ??= open().finally(() => opening = undefined)).then(() => retryWhileBusy(attempt))
    }
    return runWithRetry(attempt)
  }

  return {
    use,
    /** Runs `work` as `use` does, with a commit that waits for the disk. */
    synced: <T>(work: (query: SqliteQuery) => T) => use((query) => database!.synced(() => work(query))),
    /** Whether there is something to read. */
    exists: () => database !== undefined || !isInMemory && existsSync(file),
    close,
  }
}

/**
 * @param store Path of the store's file, or `:memory:`.
 * @param shareLimits Whether to count all windows in the file, or none; long ones if it is absent.
 * Quotas of partners always.
 * @param quotaClock The clock of windows, if it is not this machine's.
 */
export function createServersFile(
  store: string,
  revisions: Revisions,
  shareLimits: boolean | undefined,
  quotaClock: Pick<Clock, 'now'> | undefined,
) {
  const { use, synced, exists, close } = createServersDatabase(store, quotaClock)
  const useQuery: SqlQuery = (sql, parameters) => use((query) => query(sql, parameters))
  const replicas: ReplicaRegistry = {
    register: (replica) => createRegistration(createReplicaStatements(use), replica),
    progress(revision) {
      if (!exists()) return []
      return use((query) => toProgress(readLive(query, REPLICA_RETENTION_MS), revision, revisions.current()))
    },
  }
  return {
    replicas,
    quotas: {
      sharesLimits: shareLimits !== false,
      leastWindowSeconds: shareLimits ? 1 : longWindowSeconds,
      ...createQuotaStore({
        dialect: DIALECT,
        lookUpOne: <R>(sql: string) => (parameters: readonly SqlValue[]) =>
          exists() ? use((query) => query(sql, parameters)[0] as R | undefined) : undefined,
        commit: (sql, parameters) => synced((query) => query(sql, parameters)),
        asyncCommit: useQuery,
        prune: (sql, parameters) => ignoreFailure(() => useQuery(sql, parameters)),
        pruneEvery: 64,
      }, 'quota_term'),
    },
    close,
  }
}

type Use = <T>(work: (query: SqliteQuery) => T) => MaybePromise<T>

/** Less than half of the retention: after the other half, a silent replica registers anew. */
const heartbeatMs = 20_000

/** A replica writes when it starts and stops, when it has applied a change, and three times a minute. */
function createReplicaStatements(use: Use): ReplicaStatements {
  let written = { facts: '', content: '', at: -Infinity }

  function write(query: SqliteQuery, identity: ReplicaIdentity, { facts, content }: Revision): void {
    const at = clock.now()
    query(confirmSql, [...identity, facts, content, at, process.pid, pidNamespace])
    written = { facts, content, at }
  }

  return {
    register: (identity) => use((query) => write(query, identity, written)),
    confirm: (identity, revision) =>
      use((query) => {
        const { facts, content, at } = written
        const live = readLive(query, heartbeatMs + LIVE_GRACE_MS)
        const others = live.filter(([id]) => id !== identity[0]).length
        const isWritten = facts === revision.facts && content === revision.content
        const isDue = live.length === others || Math.abs(clock.now() - at) >= heartbeatMs
        if (!isWritten) write(query, identity, revision)
        // On a full disk, the server continues: the store cannot change then, and the next confirmation tries again.
        else if (isDue) ignoreFailure(() => write(query, identity, revision))
        return others
      }),
    // No process can call back another one.
    listen: () => () => undefined,
    remove: (id) => use((query) => void query(removeSql, [id, clock.now() - REPLICA_RETENTION_MS])),
  }
}

/** The replicas whose lease ended less than `graceMs` ago and whose process has not ended. */
function readLive(query: SqliteQuery, graceMs: number) {
  return query<[pid: number, namespace: string, ...ProgressRow]>(listSql, [clock.now() - graceMs])
    .flatMap(([pid, namespace, ...row]) => namespace === pidNamespace && hasEnded(pid) ? [] : [row])
}

/** Where process ids mean the same: containers have their own. Deno would ask for permission. */
const pidNamespace = readPidNamespace()

function readPidNamespace(): string {
  if (process.versions['deno'] !== undefined) return `deno ${process.pid} ${performance.timeOrigin}`
  return process.platform === 'linux' ? readlinkSync('/proc/self/ns/pid') : process.platform
}

/** Whether no process has this id. One that may not be signalled has not ended. */
export function hasEnded(pid: number): boolean {
  try {
    return !process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
