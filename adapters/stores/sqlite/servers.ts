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
import { leaseParameters, quotaStatements, toLease } from '../quotas.ts'
import {
  createRegistration,
  LIVE_GRACE_MS,
  type ReplicaIdentity,
  RETENTION_MS,
  toProgress,
} from '../replicas.ts'
import {
  clock,
  type Database,
  openDatabase,
  retryWhileBusy,
  runWithRetry,
  type Statement,
} from './database.ts'
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
  CREATE TABLE IF NOT EXISTS quota_term (
    policy TEXT, subject TEXT, opened_at INTEGER, ends_at INTEGER, taken INTEGER, granted INTEGER,
    quota INTEGER, term INTEGER, held INTEGER, PRIMARY KEY (policy, subject)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS quota_term_end ON quota_term (ends_at)`

const { peek, take, returnLeases } = quotaStatements({
  table: 'quota_term',
  parameter: (number) => `?${number + 1}`,
  least: 'min',
  greatest: 'max',
  now: '?1',
  returned: `(SELECT ${
    ['policy', 'subject', 'term', 'used', 'unused'].map((name) => `value ->> '${name}' AS ${name}`)
  } FROM json_each(?1)) AS returned`,
})

const statements = {
  confirm: `INSERT INTO replica (id, name, lease_ms, facts, content, seen_at, pid, pid_namespace)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT (id) DO UPDATE SET facts = excluded.facts, content = excluded.content, seen_at = excluded.seen_at`,
  list: `SELECT pid, pid_namespace, id, name, lease_ms, facts, content, 0 FROM replica
    WHERE seen_at + lease_ms > ?1 ORDER BY id`,
  remove: 'DELETE FROM replica WHERE id = ?1 OR seen_at + lease_ms <= ?2',
  peek,
  take,
  returnLeases,
  prune: `DELETE FROM quota_term WHERE (policy, subject) IN (
    SELECT policy, subject FROM quota_term WHERE ends_at <= ?1 ORDER BY ends_at LIMIT 128)`,
}

// deno-lint-ignore no-explicit-any -- each statement has rows of its own
type Statements = Record<keyof typeof statements, Statement<any>>

/** A window that a restart must not forget. */
const longWindowSeconds = 3_600

/**
 * @param store Path of the store's file.
 * @param shareLimits Whether to count all windows in the file, or only long ones.
 */
export function createServersFile(
  store: string,
  revisions: Pick<Revisions, 'current'>,
  shareLimits: boolean,
) {
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
  return {
    replicas,
    quotas: createQuotaStore(use, shareLimits ? 1 : longWindowSeconds),
    close: () => database?.close(),
  }
}

type Use = <T>(work: (statements: Statements) => T) => MaybePromise<T>

/** Less than half of the retention: after the other half, a silent replica registers anew. */
const heartbeatMs = 20_000

/** A replica writes when it starts and stops, when it has applied a change, and three times a minute. */
function createReplicaStatements(use: Use): Parameters<typeof createRegistration>[0] {
  let written = { facts: '', content: '', at: -Infinity }

  function write(sql: Statements, identity: ReplicaIdentity, { facts, content }: Revision): void {
    const at = clock.now()
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
        const isDue = live.length === others || Math.abs(clock.now() - at) >= heartbeatMs
        if (!isWritten) write(sql, identity, revision)
        else if (isDue) writeHeartbeat(sql, identity, revision)
        return others
      }),
    remove: (id) => use((sql) => void sql.remove.run(id, clock.now() - RETENTION_MS)),
  }
}

/** The replicas that were heard of until so many milliseconds after their lease and whose process has not ended. */
function readLive({ list }: Statements, graceMs: number) {
  return list.all(clock.now() - graceMs)
    .flatMap(([pid, namespace, ...row]) => namespace === pidNamespace && hasEnded(pid) ? [] : [row])
}

/** Where process ids mean the same: containers have their own. Deno would ask for permission. */
const pidNamespace = process.versions['deno'] !== undefined
  ? `deno ${process.pid} ${performance.timeOrigin}`
  : process.platform === 'linux'
  ? readlinkSync('/proc/self/ns/pid')
  : process.platform

export function hasEnded(pid: number): boolean {
  try {
    return !process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** Each lease is an upsert of one row, which reaches the disk later. */
function createQuotaStore(use: Use, leastWindowSeconds: number): QuotaStore {
  let windows = 0
  return {
    leastWindowSeconds,
    leaseQuota: (request) =>
      use((sql): QuotaLease => {
        const now = clock.now()
        const row = sql[request.wanted > 0 ? 'take' : 'peek'].get(now, ...leaseParameters(request))
        const lease = toLease(row, request)
        if (request.wanted > 0 && row[3] === row[2] && windows++ % 64 === 0) sql.prune.run(now)
        return lease
      }),
    returnQuotas: (returns) => use((sql) => void sql.returnLeases.run(JSON.stringify(returns))),
  }
}
