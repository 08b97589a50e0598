/** Waiting for the locks of other processes. */
import { delay, type MaybePromise } from '../../../core/lib/promise.ts'

/** Milliseconds that a statement waits for another process's lock. */
export const BUSY_TIMEOUT_MS = 5000

/** Whether another process holds a lock. On Deno, errors carry no SQLite code. */
export function isBusy(error: unknown): boolean {
  return error instanceof Error && (error.message.includes('database is locked') || isBusy(error.cause))
}

/**
 * Runs `work` at once, and retries while another process holds the lock: for as long as a statement would wait, but
 * without blocking this process. A transaction in `work` must not wait for the lock itself.
 *
 * @throws {StoreError} `unreachable` when the other process keeps the lock.
 */
export function runWithRetry<T>(work: () => T): MaybePromise<T> {
  try {
    return work()
  } catch (error) {
    if (!isBusy(error)) throw error
    return retryWhileBusy(work)
  }
}

/** Repeats `work` while another process holds the lock, for as long as a statement would wait. */
export async function retryWhileBusy<T>(work: () => T): Promise<T> {
  const deadline = performance.now() + BUSY_TIMEOUT_MS
  for (let pause = 1;; pause = Math.min(pause * 2, 16)) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error
    }
    await delay(pause)
  }
}
