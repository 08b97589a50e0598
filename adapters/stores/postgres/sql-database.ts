import { delay, timeout } from '../../../core/lib/promise.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import type { Revision } from '../../../core/ports/facts.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import { appendAuditRecords } from '../sql/audit.ts'
import { type AuditedChange, type ChangeKind, runWork, type SqlDatabase, type Work } from '../sql/database.ts'
import type { PostgresDatabase } from './database.ts'
import { isCommitUnknown, SqlError } from './errors.ts'
import type { Revisions } from './revisions.ts'
import { DIALECT } from './sql.ts'

/**
 * Milliseconds for each statement of a transaction other than an administrative change: as long
 * as for a single statement.
 */
const statementTimeoutMs = 10_000

export function createSqlDatabase(database: PostgresDatabase, revisions: Revisions): SqlDatabase {
  const transaction: SqlDatabase['transaction'] = (work) =>
    database.transaction(async (query) => await runWork(work(), query), {
      readOnly: false,
      statementTimeoutMs,
    })
  return {
    dialect: DIALECT,
    lookUp: database.lookUp,
    read: database.read,
    write: database.write,
    transaction,
    // Commits of one moment share a sync.
    writeUnsynced: database.write,
    transactionUnsynced: transaction,
    prune: (sql, parameters) => void database.asyncCommit(sql, parameters).catch(() => undefined),
    change: (kind, context, work) => runAudited(database, revisions, kind, context, work),
  }
}

/**
 * Seconds that a change of facts waits for a lock. Other changes hold it briefly, but a migration may take longer,
 * and the operator who revokes a key must learn that it failed. Imports wait without a limit.
 */
const lockTimeoutSeconds = 5
const setLockTimeout = `SELECT set_config('lock_timeout', '${lockTimeoutSeconds}s', true)`

/** Milliseconds to find out whether a change was committed, and between two attempts. */
const confirmTimeoutMs = 10_000
const retryPauseMs = 200

/**
 * Makes a change, writes its audit records and events, moves the revision of its kind and notifies all replicas.
 * Changes of one kind wait for each other.
 *
 * @param work May run more than once. It is given the revision that the change is made under.
 * @throws {StoreError} `unreachable` when the lock is not free in time, and when the change may have been
 * made, which the message says.
 */
async function runAudited<T>(
  database: PostgresDatabase,
  revisions: Revisions,
  kind: ChangeKind,
  context: AuditContext,
  work: (revision: string) => Work<AuditedChange<T>>,
): Promise<T> {
  const locked = kind === 'uncached' ? 'facts' : kind
  let attempted: { readonly id: string; readonly result: T } | undefined
  try {
    const result = await database.transaction(async (query, rollback) => {
      attempted = undefined
      if (locked === 'facts') await query(setLockTimeout)
      const revision = await revisions.lock(query, locked)
      const { result, auditRecords, events } = await runWork(work(revision), query)
      const id = await runWork(appendAuditRecords(DIALECT, auditRecords, context, events), query)
      if (id === undefined) {
        rollback()
        return result
      }
      if (kind !== 'uncached') await revisions.bump(query, kind)
      attempted = { id, result }
      return result
    })
    if (attempted !== undefined) await database.notify()
    return result
  } catch (error) {
    if (error instanceof SqlError && error.code === '55P03') throw lockedError(database, error)
    if (attempted === undefined || !isCommitUnknown(error)) throw error
    const { id, result } = attempted
    if (await wasCommitted(database, revisions, locked, id, error)) {
      await database.notify()
      return result
    }
    throw new StoreError(
      'unreachable',
      `The connection to the store ${database.location} was lost during a change, which was not saved: try again.`,
      { cause: error },
    )
  }
}

/**
 * Looks for the audit entry of a change. The change holds the lock of its kind until the server has ended its
 * transaction, so that its outcome is final once the lock is free.
 */
async function wasCommitted(
  database: PostgresDatabase,
  revisions: Revisions,
  kind: keyof Revision,
  id: string,
  cause: unknown,
): Promise<boolean> {
  const end = performance.now() + confirmTimeoutMs
  for (let leftMs = confirmTimeoutMs; leftMs > 0; leftMs = end - performance.now()) {
    const lookup = database.transaction(async (query, rollback) => {
      rollback()
      await revisions.lock(query, kind)
      return (await query('SELECT 1 FROM partner_api.audit WHERE id = $1', [id])).length > 0
    }).catch(() => undefined)
    const isCommitted = await timeout<boolean | undefined>(lookup, leftMs, () => undefined)
    if (isCommitted !== undefined) return isCommitted
    await delay(retryPauseMs)
  }
  throw new StoreError(
    'unreachable',
    `The connection to the store ${database.location} was lost during a change, which may have been saved. ` +
      'Check before trying again.',
    { cause },
  )
}

function lockedError({ location }: PostgresDatabase, cause: SqlError): StoreError {
  return new StoreError(
    'unreachable',
    `The store ${location} cannot be changed: another program has kept it locked for ${lockTimeoutSeconds} s. Nothing was changed.`,
    { cause },
  )
}
