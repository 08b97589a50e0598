import type { Stamp } from '../../../../core/audit/entry.ts'
import type { Revision } from '../../../../core/ports.ts'
import { StoreError } from '../../store-error.ts'
import type { Note } from '../../trail.ts'
import { type Database, type Query, SqlError, UncertainCommit } from '../connection/database.ts'
import type { Revisions } from '../revisions.ts'
import type { Trail } from './trail.ts'

/** Where changes are kept and noted. */
export interface Books {
  readonly database: Database
  readonly revisions: Revisions
  readonly trail: Trail
}

/** What came of a change, and what the trail is to say of it. Without notes, nothing of it is kept. */
export interface Decided<T> {
  readonly result: T
  readonly notes: readonly Note[]
}

/**
 * How long a change of facts waits for somebody else's lock, in seconds. Those that the store takes are held for moments,
 * but for a migration's: whoever revokes a key is to know that it is not done. Imports take their time, and are waited for.
 */
const lockSeconds = 5
const setPatience = `SELECT set_config('lock_timeout', '${lockSeconds}s', true)`

/** How long a change whose commit nobody confirmed is looked for. */
const searchMs = 10_000

/** Between two looks, while the server is away. */
const pauseMs = 200

/**
 * Runs a change of what a kind of revision stands for, notes it, moves the revision, and tells all replicas. Changes of
 * one kind wait for each other.
 *
 * @param work May be run again from its start. It is given the revision under which it decides.
 * @throws {StoreError} `unreachable`, saying so when the change may have been made all the same; also when facts are kept
 * locked by somebody else.
 */
export async function decide<T>(
  books: Books,
  kind: keyof Revision,
  stamp: Stamp,
  work: (query: Query, revision: string) => Promise<Decided<T>>,
): Promise<T> {
  const { database, revisions, trail } = books
  let last: { readonly id: string; readonly result: T } | undefined
  try {
    const result = await database.transaction(async (query, rollback) => {
      last = undefined
      if (kind === 'facts') await query(setPatience)
      const revision = await revisions.lock(query, kind)
      const { result, notes } = await work(query, revision)
      const id = await trail.append(query, notes, stamp)
      if (id === undefined) {
        rollback()
        return result
      }
      await revisions.bump(query, kind)
      last = { id, result }
      return result
    })
    if (last !== undefined) await revisions.told()
    return result
  } catch (error) {
    if (error instanceof SqlError && error.code === '55P03') throw locked(database, error)
    if (last === undefined || !isUncertain(error)) throw error
    const { id, result } = last
    if (await wasKept(books, kind, id, error)) {
      await revisions.told()
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
async function wasKept(books: Books, kind: keyof Revision, id: string, lost: unknown): Promise<boolean> {
  const { database, revisions, trail } = books
  const overdue = Promise.withResolvers<undefined>()
  let late = false
  const timer = setTimeout(() => {
    late = true
    overdue.resolve(undefined)
  }, searchMs)
  try {
    while (!late) {
      const look = database.transaction(async (query, rollback) => {
        rollback()
        await revisions.lock(query, kind)
        return await trail.has(query, id)
      })
      const kept = await Promise.race([look.catch(() => undefined), overdue.promise])
      if (kept !== undefined) return kept
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
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

function locked({ place }: Database, cause: SqlError): StoreError {
  return new StoreError(
    'unreachable',
    `The store ${place} cannot be changed: another program has kept it locked for ${lockSeconds} s. Nothing was changed.`,
    { cause },
  )
}

/** Whether nobody knows what became of a transaction. */
export function isUncertain(error: unknown): boolean {
  return error instanceof StoreError && error.cause instanceof UncertainCommit
}
