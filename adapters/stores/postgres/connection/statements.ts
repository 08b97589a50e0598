import { setTimeout as sleep } from 'node:timers/promises'
import { type Database, type Row, UncertainCommit, type Value } from './database.ts'
import { pauseAfter } from './entrance.ts'
import type { Pool } from './pool.ts'
import { explain, isDemoted, isToBeRepeated, isUnresolved, Lost, unreachable } from './sql-error.ts'

/** How often a statement is run when the server asks for it again, and when its connection was lost. */
export const MAX_REPEATS = 10
export const MAX_LOSSES = 3

/**
 * Single statements, each on a connection of the pool.
 *
 * @param timeoutMs Milliseconds within which every statement is answered or given up.
 */
export function createStatements(
  pool: Pool,
  place: string,
  timeoutMs: number,
): Pick<Database, 'read' | 'write'> {
  async function run<R extends Row>(
    sql: string,
    parameters: readonly Value[],
    isWrite: boolean,
  ): Promise<R[]> {
    const deadline = performance.now() + timeoutMs
    for (let repeats = 0, losses = 0;;) {
      try {
        return await once<R>(sql, parameters, deadline)
      } catch (error) {
        if (isWrite && isUnresolved(error) && !(error instanceof Unsent)) throw uncertain(place, error)
        // A timer may be a millisecond early.
        const isLate = performance.now() > deadline - 2
        if (isToBeRepeated(error) && !isLate && ++repeats < MAX_REPEATS) await sleep(pauseAfter(repeats))
        else if (!(isDemoted(error) || error instanceof Lost) || isLate || ++losses >= MAX_LOSSES) {
          throw explain(place, error)
        }
      }
    }
  }

  async function once<R extends Row>(
    sql: string,
    parameters: readonly Value[],
    deadline: number,
  ): Promise<R[]> {
    const session = await pool.take(Math.max(0, deadline - performance.now()))
    const give = () => session.lose(`no answer within ${timeoutMs} ms`)
    let isDone = false
    // When it was this process that stood still, an answer that is here already is read first.
    const timer = setTimeout(() => setImmediate(() => isDone || give()), deadline - performance.now())
    try {
      if (session.isLost()) throw new Unsent('the connection was closed')
      return await session.ask<R>(sql, parameters)
    } catch (error) {
      if (isDemoted(error)) session.lose((error as Error).message)
      throw error
    } finally {
      isDone = true
      clearTimeout(timer)
      pool.giveBack(session)
    }
  }

  return {
    read: (sql, parameters = []) => run(sql, parameters, false),
    write: (sql, parameters = []) => run(sql, parameters, true),
  }
}

/** A connection that was lost before anything was sent on it. */
class Unsent extends Lost {}

/** For what may have been done, or not. */
export function uncertain(place: string, error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error)
  return unreachable(place, reason, new UncertainCommit(`nobody knows whether it was done: ${reason}`))
}
