import { delay, timeout } from '../../../core/lib/promise.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import type { Revision } from '../../../core/ports/facts.ts'
import type { WebhookEvent } from '../../../core/ports/webhooks.ts'
import type { AuditRecord } from '../../../core/audit/records.ts'
import { StoreError } from '../store-error.ts'
import { appendAuditRecords, hasAuditEntry } from './audit.ts'
import type { Query } from './connection.ts'
import type { Database } from './database.ts'
import { isCommitUnknown, SqlError } from './errors.ts'
import type { Revisions } from './revisions.ts'

/** Without audit records, the change is rolled back. */
export interface AuditedResult<T> {
  readonly result: T
  readonly auditRecords: readonly AuditRecord[]
  /** The events of the change, for webhooks. */
  readonly events?: () => readonly WebhookEvent[]
  /** Whether caches need not notice the change. */
  readonly keepsRevision?: boolean
}

/**
 * Seconds that a change of facts waits for a lock. Other changes hold it briefly, but a migration may take longer, and the
 * operator who revokes a key must learn that it failed. Imports wait without a limit.
 */
const lockTimeoutSeconds = 5
const setLockTimeout = `SELECT set_config('lock_timeout', '${lockTimeoutSeconds}s', true)`

/** Milliseconds to find out whether a change was committed, and between two attempts. */
const confirmTimeoutMs = 10_000
const retryPauseMs = 200

/**
 * Makes a change, writes its audit records and events, moves the revision of its kind and notifies all replicas. Changes
 * of one kind wait for each other.
 *
 * @param work May run more than once. It is given the revision that the change is made under.
 * @throws {StoreError} `unreachable` when the lock is not free in time, and when the change may have been made, which the
 * message says.
 */
export async function runAudited<T>(
  database: Database,
  revisions: Revisions,
  kind: keyof Revision,
  context: AuditContext,
  work: (query: Query, revision: string) => Promise<AuditedResult<T>>,
): Promise<T> {
  let attempted: { readonly id: string; readonly result: T } | undefined
  try {
    const result = await database.transaction(async (query, rollback) => {
      attempted = undefined
      if (kind === 'facts') await query(setLockTimeout)
      const revision = await revisions.lock(query, kind)
      const { result, auditRecords, events, keepsRevision = false } = await work(query, revision)
      const id = await appendAuditRecords(query, auditRecords, context, events)
      if (id === undefined) {
        rollback()
        return result
      }
      if (!keepsRevision) await revisions.bump(query, kind)
      attempted = { id, result }
      return result
    })
    if (attempted !== undefined) await database.notify()
    return result
  } catch (error) {
    if (error instanceof SqlError && error.code === '55P03') throw lockedError(database, error)
    if (attempted === undefined || !isCommitUnknown(error)) throw error
    const { id, result } = attempted
    if (await wasCommitted(database, revisions, kind, id, error)) {
      await database.notify()
      return result
    }
    throw new StoreError(
      'unreachable',
      `The store ${database.place} was lost while it was changed, and has nothing of the change: try again.`,
      { cause: error },
    )
  }
}

/**
 * Looks for the audit entry of a change. The change holds the lock of its kind until the server has ended its transaction,
 * so that its outcome is settled once the lock is free.
 */
async function wasCommitted(
  database: Database,
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
      return await hasAuditEntry(query, id)
    }).catch(() => undefined)
    const isCommitted = await timeout<boolean | undefined>(lookup, leftMs, () => undefined)
    if (isCommitted !== undefined) return isCommitted
    await delay(retryPauseMs)
  }
  throw new StoreError(
    'unreachable',
    `The store ${database.place} was lost while it was changed: the change may have been made all the same. ` +
      'Look before trying again.',
    { cause },
  )
}

function lockedError({ place }: Database, cause: SqlError): StoreError {
  return new StoreError(
    'unreachable',
    `The store ${place} cannot be changed: another program has kept it locked for ${lockTimeoutSeconds} s. Nothing was changed.`,
    { cause },
  )
}
