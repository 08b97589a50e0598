/** Connections to standbys, which no read waits for. */
import type { Connection, ConnectionOptions, Query } from './connection.ts'
import { ConnectionLostError } from './errors.ts'
import { before, createSlot } from './pool.ts'
import { runTransaction } from './transaction.ts'
import type { PostgresUrl } from './url.ts'

export type Standby = ReturnType<typeof createStandby>

/** Milliseconds between attempts to find a standby. */
const retryMs = 1_000

/**
 * @param open Connects to a standby.
 * @param epoch Connections of an earlier one are replaced.
 */
export function createStandby(
  open: (options: Partial<ConnectionOptions>) => Promise<Connection>,
  epoch: () => number,
  { place, connections, isPooled }: PostgresUrl,
  { lookUpTimeoutMs, statementTimeoutMs }: { lookUpTimeoutMs: number; statementTimeoutMs: number },
) {
  // Later than the server, so that a long statement does not cost the connection, and early enough for the primary.
  const limitMs = lookUpTimeoutMs / 3
  const settings = { statement_timeout: String(statementTimeoutMs) }
  const newSlot = () => createSlot(() => open({ silenceMs: limitMs, settings }), epoch)
  const shared = newSlot()
  const idle = Array.from({ length: connections }, newSlot)
  let retryAt = 0

  return {
    /**
     * Runs `work`, and fails if that takes long. A look-up is pipelined on one connection with others.
     *
     * @param isSearch Runs it in a transaction that sees one snapshot.
     * @returns Undefined when no connection is ready.
     * @throws whatever keeps this standby from answering. The primary may answer all the same.
     */
    async run<T>(
      { isLookUp, isSearch }: { readonly isLookUp?: boolean; readonly isSearch?: boolean },
      work: (query: Query) => Promise<T>,
    ): Promise<T | undefined> {
      // A pooler may run each of two statements on another server.
      const inTransaction = isSearch || isPooled
      const isShared = isLookUp && !isPooled
      const slot = isShared ? shared : idle.findLast((slot) => slot.current()) ?? idle.at(-1)
      const connection = slot?.current()
      if (slot === undefined || connection === undefined) {
        if (performance.now() >= retryAt) slot?.open().catch(() => retryAt = performance.now() + retryMs)
        return undefined
      }
      if (!isShared) idle.splice(idle.indexOf(slot), 1)
      try {
        const done = inTransaction
          ? runTransaction(connection, { place, readOnly: true, statementTimeoutMs }, work)
          : work((sql, parameters) => connection.query(sql, parameters) as Promise<never>)
        const late = () => new ConnectionLostError(`no answer within ${Math.round(limitMs)} ms`)
        return await before(performance.now() + limitMs, done, late)
      } catch (error) {
        if (error instanceof ConnectionLostError) connection.destroy(error.message)
        throw error
      } finally {
        if (!isShared) idle.push(slot)
      }
    },
  }
}
