import type { MaybePromise } from '../../../core/ports.ts'
import { StoreError } from '../store-error.ts'
import { BUSY_TIMEOUT_MS, type Database, isBusy } from './database.ts'

const longestPauseMs = 16

/**
 * Runs a transaction at once when no other process holds the write lock. Otherwise tries again for as long as
 * `Database.transaction` would wait, and lets the process answer other requests meanwhile.
 *
 * @throws {StoreError} `unreachable` when the lock stays taken.
 */
export function transactionInTurn<T>(database: Database, work: () => T): MaybePromise<T> {
  try {
    return database.transaction(work, { wait: false })
  } catch (error) {
    if (!isTaken(error)) throw error
    return tryAgain(database, work)
  }
}

async function tryAgain<T>(database: Database, work: () => T): Promise<T> {
  const deadline = Date.now() + BUSY_TIMEOUT_MS
  for (let pause = 1;; pause = Math.min(pause * 2, longestPauseMs)) {
    await new Promise((resolve) => setTimeout(resolve, pause))
    try {
      return database.transaction(work, { wait: false })
    } catch (error) {
      if (!isTaken(error) || Date.now() > deadline) throw error
    }
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof StoreError && isBusy(error.cause)
}
