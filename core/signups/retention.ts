import type { Clock } from '../lib/clock.ts'
import { delay } from '../lib/promise.ts'
import { MS_PER_DAY } from '../lib/time.ts'
import type { SignupStore } from '../ports/signups.ts'

/** Most checks find nothing: signups are due when their day is. What a killed server has left is due at the next one. */
const checkEveryMs = 3_600_000
const unsettledMs = 10_000
/** A store in this process does nothing else during a batch. */
const batch = { first: 8, most: 500, maxMs: 4 }

/**
 * Deletes the signups of days that ended more than `keepDays` days ago, until it is closed. Of several servers, the first
 * one deletes those of a day.
 *
 * @param keepDays 0 to delete nothing.
 * @param onFailure Called for each check that fails.
 */
export function startRetention(
  store: Pick<SignupStore, 'listSignups' | 'deleteSignups' | 'eraseRemains'>,
  keepDays: number,
  clock: Pick<Clock, 'now' | 'isSettled'>,
  onFailure: (error: unknown) => void,
) {
  const closing = new AbortController()
  const { signal } = closing

  async function deleteDue(): Promise<void> {
    const before = (Math.floor(clock.now() / MS_PER_DAY) - keepDays) * MS_PER_DAY
    let size = batch.first
    while (!signal.aborted) {
      const due = await store.listSignups(undefined, { createdAt: before - 1, id: '' }, size)
      if (due.length === 0) break
      const startedAt = performance.now()
      const deleting = store.deleteSignups(due.map(({ id }) => id), { actor: 'partner-api', at: clock.now() })
      const blockedMs = performance.now() - startedAt
      const deleted = await deleting
      // After each: the log is short.
      if (deleted > 0) await store.eraseRemains?.(false)
      // Another server is at it.
      if (deleted < due.length) break
      size = blockedMs < batch.maxMs ? Math.min(size * 2, batch.most) : Math.ceil(size / 2)
      await delay(blockedMs)
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      // A clock that has just jumped may be wrong.
      const isSettled = clock.isSettled()
      if (isSettled) await deleteDue().catch(onFailure)
      await delay(isSettled ? checkEveryMs : unsettledMs, signal).catch(() => undefined)
    }
  }

  const running = keepDays > 0 ? run() : Promise.resolve()
  return {
    close(): Promise<void> {
      closing.abort()
      return running
    },
  }
}
