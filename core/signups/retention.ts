import type { Clock } from '../lib/clock.ts'
import type { WebAbortSignal } from '../lib/web-globals.ts'
import { delay } from '../lib/promise.ts'
import { MS_PER_DAY } from '../lib/time.ts'
import type { SignupStore } from '../ports/signups.ts'

/**
 * Milliseconds between checks. Most find nothing, since signups are due by the day; what a killed server has left is
 * due at the next one.
 */
const checkEveryMs = 3_600_000
const unsettledMs = 10_000
/** A store in this process does nothing else during a batch. */
const batch = { least: 16, most: 500, maxMs: 5 }

/**
 * Deletes the signups of days that ended more than `keepSignupsDays` days ago, until `signal` is aborted. Of several
 * servers, the first one deletes those of a day.
 *
 * @param onFailure Called for each check that fails.
 */
export async function deleteOldSignups(
  store: Pick<SignupStore, 'listSignups' | 'deleteSignups' | 'eraseRemains'>,
  { keepSignupsDays }: { readonly keepSignupsDays: number },
  clock: Pick<Clock, 'now' | 'deletionTime'>,
  onFailure: (error: unknown) => void,
  signal: WebAbortSignal,
): Promise<void> {
  /** Whether deleted signups may have left remains: at the start, those of a server that was killed. */
  let hasRemains = true
  let size = batch.least

  async function deleteDue(now: number): Promise<void> {
    const before = (Math.floor(now / MS_PER_DAY) - keepSignupsDays) * MS_PER_DAY
    while (!signal.aborted) {
      const due = await store.listSignups(undefined, { createdAt: before - 1, id: '' }, size)
      if (due.length === 0) break
      hasRemains = true
      const startedAt = performance.now()
      const deleting = store.deleteSignups(due.map(({ id }) => id), { actor: 'partner-api', at: clock.now() })
      const blockedMs = performance.now() - startedAt
      // Another server is at it.
      if (await deleting < due.length) break
      size = blockedMs < batch.maxMs
        ? Math.min(size * 2, batch.most)
        : Math.max(Math.floor(size / 2), batch.least)
      await delay(blockedMs)
    }
    if (hasRemains) await store.eraseRemains(false)
    hasRemains = false
  }

  while (!signal.aborted) {
    let pauseMs = checkEveryMs
    try {
      const now = clock.deletionTime()
      if (now === undefined) pauseMs = unsettledMs
      else await deleteDue(now)
    } catch (error) {
      onFailure(error)
    }
    await delay(pauseMs, signal).catch(() => undefined)
  }
}
