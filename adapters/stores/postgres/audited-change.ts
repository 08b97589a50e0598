import type { AuditContext } from '../../../core/ports/changes.ts'
import type { Revision } from '../../../core/ports/facts.ts'
import type { AuditRecord } from '../audit-log.ts'
import { StoreError } from '../store-error.ts'
import type { PostgresAuditLog } from './audit.ts'
import type { Database, Query } from './database.ts'
import { CommitUnknownError, SqlError } from './errors.ts'
import type { Revisions } from './revisions.ts'

/** Where changes are kept and noted. */
export interface AuditedDeps {
  readonly database: Database
  readonly revisions: Revisions
  readonly trail: PostgresAuditLog
}

/** What came of a change, and what the trail is to say of it. Without notes, nothing of it is kept. */
export interface AuditedResult<T> {
  readonly result: T
  readonly auditRecords: readonly AuditRecord[]
}

/**
 * How long a change of facts waits for somebody else's lock, in seconds. Those that the store takes are held for moments,
 * but for a migration's: whoever revokes a key is to know that it is not done. Imports take their time, and are waited for.
 */
const lockTimeoutSeconds = 5
const setLockTimeout = `SELECT set_config('lock_timeout', '${lockTimeoutSeconds}s', true)`

/** How long a change whose commit nobody confirmed is looked for. */
const confirmTimeoutMs = 10_000

/** Between two looks, while the server is away. */
const retryPauseMs = 200

/**
 * Runs a change of what a kind of revision stands for, notes it, moves the revision, and tells all replicas. Changes of
 * one kind wait for each other.
 *
 * @param work May be run again from its start. It is given the revision under which it decides.
 * @throws {StoreError} `unreachable`, saying so when the change may have been made all the same; also when facts are kept
 * locked by somebody else.
 */
export async function runAudited<T>(
  deps: AuditedDeps,
  kind: keyof Revision,
  stamp: AuditContext,
  work: (query: Query, revision: string) => Promise<AuditedResult<T>>,
): Promise<T> {
  const { database, revisions, trail: auditLog } = deps
  let attempted: { readonly id: string; readonly result: T } | undefined
  try {
    const result = await database.transaction(async (query, rollback) => {
      attempted = undefined
      if (kind === 'facts') await query(setLockTimeout)
      const revision = await revisions.lock(query, kind)
      const { result, auditRecords: notes } = await work(query, revision)
      const id = await auditLog.append(query, notes, stamp)
      if (id === undefined) {
        rollback()
        return result
      }
      await revisions.bump(query, kind)
      attempted = { id, result }
      return result
    })
    if (attempted !== undefined) await revisions.notify()
    return result
  } catch (error) {
    if (error instanceof SqlError && error.code === '55P03') throw lockedError(database, error)
    if (attempted === undefined || !isCommitUnknown(error)) throw error
    const { id, result } = attempted
    if (await wasCommitted(deps, kind, id, error)) {
      await revisions.notify()
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
 * Looks for the entry of a change. The lock of its kind is the change's own until the server has ended its transaction:
 * whoever has it knows that nothing is under way any more.
 */
async function wasCommitted(
  deps: AuditedDeps,
  kind: keyof Revision,
  id: string,
  lost: unknown,
): Promise<boolean> {
  const { database, revisions, trail: auditLog } = deps
  const timeout = Promise.withResolvers<undefined>()
  let isOverdue = false
  const timer = setTimeout(() => {
    isOverdue = true
    timeout.resolve(undefined)
  }, confirmTimeoutMs)
  try {
    while (!isOverdue) {
      const lookup = database.transaction(async (query, rollback) => {
        rollback()
        await revisions.lock(query, kind)
        return await auditLog.has(query, id)
      })
      const isCommitted = await Promise.race([lookup.catch(() => undefined), timeout.promise])
      if (isCommitted !== undefined) return isCommitted
      await new Promise((resolve) => setTimeout(resolve, retryPauseMs))
    }
  } finally {
    clearTimeout(timer)
  }
  throw new StoreError(
    'unreachable',
    `The store ${database.place} was lost while it was changed: the change may have been made all the same. ` +
      'Look before trying again.',
    { cause: lost },
  )
}

function lockedError({ place }: Database, cause: SqlError): StoreError {
  return new StoreError(
    'unreachable',
    `The store ${place} cannot be changed: another program has kept it locked for ${lockTimeoutSeconds} s. Nothing was changed.`,
    { cause },
  )
}

/** Whether nobody knows what became of a transaction. */
export function isCommitUnknown(error: unknown): boolean {
  return error instanceof StoreError && error.cause instanceof CommitUnknownError
}
