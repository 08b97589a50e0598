/**
 * The file STORE-servers, in which the processes that serve a store register and share limits. In the store itself, they
 * would wait for long changes and for the disk. What a power failure loses here belongs to processes that it ended.
 */
import { existsSync, readlinkSync, realpathSync } from 'node:fs'
import process from 'node:process'
import type { MaybePromise } from '../../../core/lib/promise.ts'
import type { Revision } from '../../../core/ports/facts.ts'
import type { QuotaLease, QuotaStore } from '../../../core/ports/quotas.ts'
import type { ReplicaRegistry } from '../../../core/ports/replicas.ts'
import {
  createRegistration,
  LIVE_GRACE_MS,
  type ReplicaIdentity,
  RETENTION_MS,
  toProgress,
} from '../replicas.ts'
import { type Database, openDatabase, retryWhileBusy, runWithRetry, type Statement } from './database.ts'
import type { Revisions } from './revisions.ts'

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
  CREATE TABLE IF NOT EXISTS quota_window (
    policy TEXT, subject TEXT, opened_at INTEGER, ends_at INTEGER, taken INTEGER, granted INTEGER,
    PRIMARY KEY (policy, subject)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS quota_window_end ON quota_window (ends_at)`

/** By the length of the request, also for an open window. One from the future was opened before the clock was set. */
const isOpen = '?4 - opened_at BETWEEN 1 - ?3 AND ?3 - 1'
const granted = `CASE WHEN ${isOpen} THEN min(?6, max(?5 - taken, 0)) ELSE excluded.granted END`

const statements = {
  confirm: `INSERT INTO replica (id, name, lease_ms, facts, content, seen_at, pid, pid_namespace)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT (id) DO UPDATE SET facts = excluded.facts, content = excluded.content, seen_at = excluded.seen_at`,
  list: `SELECT pid, pid_namespace, id, name, lease_ms, facts, content, 0 FROM replica
    WHERE seen_at + lease_ms > ?1 ORDER BY id`,
  remove: 'DELETE FROM replica WHERE id = ?1 OR seen_at + lease_ms <= ?2',
  peek: `SELECT opened_at, taken, 0 FROM quota_window WHERE policy = ?1 AND subject = ?2 AND ${isOpen}`,
  take: `INSERT INTO quota_window (policy, subject, opened_at, ends_at, taken, granted)
    VALUES (?1, ?2, ?4, ?4 + ?3, min(?5, ?6), min(?5, ?6))
    ON CONFLICT (policy, subject) DO UPDATE SET
      opened_at = CASE WHEN ${isOpen} THEN opened_at ELSE excluded.opened_at END,
      ends_at = CASE WHEN ${isOpen} THEN opened_at + ?3 ELSE excluded.ends_at END,
      taken = CASE WHEN ${isOpen} THEN taken ELSE 0 END + ${granted}, granted = ${granted}
    RETURNING opened_at, taken, granted`,
  prune: `DELETE FROM quota_window WHERE (policy, subject) IN (
    SELECT policy, subject FROM quota_window WHERE ends_at <= ?1 ORDER BY ends_at LIMIT 128)`,
}

// deno-lint-ignore no-explicit-any -- each statement has rows of its own
type Statements = Record<keyof typeof statements, Statement<any>>

/** @param store Path of the store's file. */
export function createServersFile(store: string, revisions: Pick<Revisions, 'current'>) {
  const file = `${realpathSync(store)}-servers`
  let database: Database | undefined
  let prepared: Statements
  let opening: Promise<void> | undefined

  async function open(): Promise<void> {
    const opened = openDatabase(file, { create: true })
    await retryWhileBusy(() => opened.exec(schema))
    const entries = Object.entries(statements).map(([name, sql]) => [name, opened.statement(sql)])
    prepared = Object.fromEntries(entries) as Statements
    database = opened
  }

  /** Repeats `work`, which changes one row, while another process writes. Creates the file if it is missing. */
  function use<T>(work: (statements: Statements) => T): MaybePromise<T> {
    const attempt = () => work(prepared)
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

  const replicas: ReplicaRegistry = {
    register: (replica) => createRegistration(createReplicaStatements(use), replica),
    progress(revision) {
      if (database === undefined && !existsSync(file)) return []
      return use((sql) => toProgress(readLive(sql, RETENTION_MS), revision, revisions.current()))
    },
  }
  return { replicas, quotas: createQuotaStore(use), close: () => database?.close() }
}

type Use = <T>(work: (statements: Statements) => T) => MaybePromise<T>

/** Less than half of the retention: after the other half, a silent replica registers anew. */
const heartbeatMs = 20_000

/** A replica writes when it starts and stops, when it has applied a change, and three times a minute. */
function createReplicaStatements(use: Use): Parameters<typeof createRegistration>[0] {
  let written = { facts: '', content: '', at: -Infinity }

  function write(sql: Statements, identity: ReplicaIdentity, { facts, content }: Revision): void {
    const at = Date.now()
    sql.confirm.run(...identity, facts, content, at, process.pid, pidNamespace)
    written = { facts, content, at }
  }

  /** On a full disk, the server goes on: the store cannot change meanwhile. */
  function writeHeartbeat(...parameters: Parameters<typeof write>): void {
    try {
      write(...parameters)
    } catch {
      // The next confirmation tries again.
    }
  }

  return {
    register: (identity) => use((sql) => write(sql, identity, written)),
    confirm: (identity, revision) =>
      use((sql) => {
        const { facts, content, at } = written
        const live = readLive(sql, heartbeatMs + LIVE_GRACE_MS)
        const others = live.filter(([id]) => id !== identity[0]).length
        const isWritten = facts === revision.facts && content === revision.content
        const isDue = live.length === others || Math.abs(Date.now() - at) >= heartbeatMs
        if (!isWritten) write(sql, identity, revision)
        else if (isDue) writeHeartbeat(sql, identity, revision)
        return others
      }),
    remove: (id) => use((sql) => void sql.remove.run(id, Date.now() - RETENTION_MS)),
  }
}

/** The replicas that were heard of until so many milliseconds after their lease and whose process has not ended. */
function readLive({ list }: Statements, graceMs: number) {
  return list.all(Date.now() - graceMs)
    .flatMap(([pid, namespace, ...row]) => namespace === pidNamespace && hasEnded(pid) ? [] : [row])
}

/** Where process ids mean the same: containers have their own. Deno would ask for permission. */
const pidNamespace = process.versions['deno'] !== undefined
  ? `deno ${process.pid} ${performance.timeOrigin}`
  : process.platform === 'linux'
  ? readlinkSync('/proc/self/ns/pid')
  : process.platform

function hasEnded(pid: number): boolean {
  try {
    return !process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** Each lease is an upsert of one row, which reaches the disk later. */
function createQuotaStore(use: Use): QuotaStore {
  let windows = 0
  return {
    leaseQuota: ({ policy, subject, quota, windowSeconds, wanted }) =>
      use((sql): QuotaLease => {
        const windowMs = windowSeconds * 1000
        const now = Date.now()
        const [openedAt, taken, granted] = wanted > 0
          ? sql.take.get(policy, subject, windowMs, now, quota, wanted)
          : sql.peek.get(policy, subject, windowMs, now) ?? [now, 0, 0]
        if (wanted > 0 && granted === taken && windows++ % 64 === 0) sql.prune.run(now)
        // `now` may be before the window was opened, if the statement had to wait for the lock.
        const resetMs = Math.min(windowMs, openedAt + windowMs - now)
        return { granted, remaining: Math.max(0, quota - taken), resetMs }
      }),
  }
}
