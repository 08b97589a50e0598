import { createLruCache } from '../lib/lru.ts'
import { PROBLEMS_PER_HOUR, type RecordedProblem } from '../ports/reports.ts'

/** Keys whose problems are counted; one that is forgotten begins again, and the store keeps the same number. */
const maxKeys = 20_000
/** Problems that wait to be written, of all keys. */
const maxPending = 500

/** Problems that wait to be written: so many an hour and key, and in all. Further ones cost a look at a counter. */
export function createProblemQueue() {
  const counters = createLruCache<{ hour: number; problems: number }>(maxKeys)
  let pending: RecordedProblem[] = []

  return {
    /** @param describe Called if the problem is recorded. */
    add(keyId: string, now: number, describe: () => RecordedProblem): void {
      const hour = Math.floor(now / 3_600_000)
      let counter = counters.get(keyId)
      if (counter?.hour !== hour) counters.set(keyId, counter = { hour, problems: 0 })
      if (counter.problems >= PROBLEMS_PER_HOUR || pending.length >= maxPending) return
      counter.problems++
      pending.push(describe())
    },

    drain(): readonly RecordedProblem[] {
      const drained = pending
      pending = []
      return drained
    },
  }
}
