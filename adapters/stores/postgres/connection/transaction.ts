import { setTimeout as sleep } from 'node:timers/promises'
import { type Database, type Query, type Row, SET_DURABLE_COMMIT, SqlError, type Value } from './database.ts'
import { pauseAfter } from './entrance.ts'
import type { Pool } from './pool.ts'
import type { Session } from './session.ts'
import { explain, isDemoted, isToBeRepeated, isUnresolved, Lost, reasonOf } from './sql-error.ts'
import { MAX_LOSSES, MAX_REPEATS, uncertain } from './statements.ts'

/**
 * The server ends a transaction that is asked nothing for this long: whoever was cut off from it does not know what he
 * holds locks on.
 */
const forgottenMs = 30_000
const begin =
  `BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${forgottenMs}; SELECT ${SET_DURABLE_COMMIT}`
/** Holds no locks, and may be read as slowly as somebody likes. */
const beginSnapshot = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'

type TransactionOptions = NonNullable<Parameters<Database['transaction']>[1]>
type Work<T> = (query: Query, rollback: () => void) => Promise<T>

export function createTransaction(
  pool: Pool,
  place: string,
  searchTimeoutMs: number,
): Database['transaction'] {
  return async (work, { readOnly, isSearch }: TransactionOptions = { readOnly: false }) => {
    // For this transaction only, whatever a pooler does with the connection afterwards.
    const limit = isSearch ? `; SET LOCAL statement_timeout = ${searchTimeoutMs}` : ''
    const beginning = (readOnly ? beginSnapshot : begin) + limit
    for (let repeats = 0, losses = 0;;) {
      const session = await pool.take()
      try {
        return await run(session, place, work, readOnly, beginning)
      } catch (error) {
        if (!(error instanceof Again)) throw error
        const { reason } = error
        const isEnough = isToBeRepeated(reason) ? ++repeats >= MAX_REPEATS : ++losses >= MAX_LOSSES
        if (isEnough) throw explain(place, reason)
      } finally {
        pool.giveBack(session)
      }
      if (repeats > 0) await sleep(pauseAfter(repeats))
    }
  }
}

/** The transaction has left no trace, and may go well when it is run once more. */
class Again extends Error {
  readonly reason: unknown

  constructor(reason: unknown) {
    super(reasonOf(reason))
    this.reason = reason
  }
}

async function run<T>(
  session: Session,
  place: string,
  work: Work<T>,
  readOnly: boolean,
  beginning: string,
): Promise<T> {
  /** What went wrong first: the rest follows from it. */
  let trouble: unknown
  let isKept = true
  let isOver = false

  async function query<R extends Row>(sql: string, parameters: readonly Value[] = []): Promise<R[]> {
    if (isOver) throw new Error('The transaction is over.')
    try {
      return await session.ask<R>(sql, parameters)
    } catch (error) {
      trouble ??= error
      throw meaningOf(error)
    }
  }

  /** Who only looks and writes all the same has found no server that was demoted. */
  function meaningOf(error: unknown): unknown {
    return readOnly && isDemoted(error) ? error : explain(place, error)
  }

  /** @returns What is to be thrown for `error`. */
  async function undo(error: unknown): Promise<unknown> {
    await session.tell('ROLLBACK').catch((failure) => session.lose(reasonOf(failure)))
    if (readOnly && isDemoted(trouble)) return error
    if (isDemoted(trouble)) session.lose(reasonOf(trouble))
    return isWorthAnother(trouble) ? new Again(trouble) : error
  }

  const begun = session.tell(beginning).catch((error) => trouble ??= error)
  // After a BEGIN that failed, each statement would be done for good.
  if (!readOnly) await begun
  let result: T
  try {
    if (trouble !== undefined) throw meaningOf(trouble)
    result = await work(query, () => isKept = false)
  } catch (error) {
    isOver = true
    throw await undo(error)
  }
  isOver = true
  await begun
  if (trouble !== undefined || !isKept) {
    const error = await undo(meaningOf(trouble))
    // Who knows of the trouble and goes on has said so by rolling back.
    if (isKept || error instanceof Again) throw error
    return result
  }
  if (readOnly) void session.tell('COMMIT').catch(() => undefined)
  else await commit(session, place)
  return result
}

async function commit(session: Session, place: string): Promise<void> {
  let answer: string
  try {
    answer = await session.tell('COMMIT')
  } catch (error) {
    if (isUnresolved(error)) throw uncertain(place, error)
    throw isWorthAnother(error) ? new Again(error) : explain(place, error)
  }
  if (answer !== 'COMMIT') throw new SqlError('25P02', 'the transaction was rolled back before its end')
}

function isWorthAnother(error: unknown): boolean {
  return error instanceof Lost || isToBeRepeated(error) || isDemoted(error)
}
