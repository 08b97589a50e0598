import { drawId } from '../draw-id.ts'
import type { Reports } from '../ports.ts'
import { createWriteBehind } from '../write-behind.ts'
import { msPerDay } from './period.ts'
import { dayOf, type UsageCount } from './usage.ts'

/** Counts requests in memory, and writes the counts down behind them. */
export interface UsageCounter {
  /**
   * Counts an answered request.
   * @param endpoint The route's name.
   * @param now The instant of the request, milliseconds since the epoch: it belongs to the day that this is on.
   */
  count(partner: string, endpoint: string, status: number, now: number): void
  /** Writes what was counted. */
  flush(): Promise<void>
}

/** How long counts wait for more: within the 5 s in which reports show them, a slow store included. */
const writeDelayMs = 2_000
/** The most counts that one write has, so that no transaction keeps others waiting for long. */
const maxWritten = 500

interface Tally {
  requests: number
  errors: number
}

/** Counts that have been sent, and are what they are until they have arrived. */
interface Batch {
  readonly id: string
  readonly counts: readonly UsageCount[]
}

/** By partner, then by endpoint. */
type Day = Map<string, Map<string, Tally>>

/**
 * Counts of one partner, day and endpoint are one number, however many requests there are. What could not be written
 * is sent again as it was, under the same name, before anything else is.
 *
 * @param onFailure Called at the first of the writes in a row that fail.
 * @param maxCounters How many numbers are held at once. While the store fails for so long that there would be more,
 * requests that need another one are not counted.
 */
export function createUsageCounter(
  source: Pick<Reports, 'recordUsage'>,
  onFailure: (error: unknown) => void = () => undefined,
  maxCounters = 50_000,
): UsageCounter {
  const days = new Map<string, Day>()
  let unsent: Batch[] = []
  let counters = 0
  let failing = false
  // The day that was counted on last.
  let current: Day | undefined
  let startsAt = 0

  const behind = createWriteBehind(writeDelayMs, async () => {
    const hadUnsent = unsent.length > 0
    if (!hadUnsent) unsent = take()
    if (!await send()) return false
    if (!hadUnsent) return true
    unsent = take()
    return send()
  })

  async function send(): Promise<boolean> {
    for (let batch = unsent[0]; batch !== undefined; batch = unsent[0]) {
      try {
        await source.recordUsage(batch.counts, batch.id)
      } catch (error) {
        if (!failing) onFailure(error)
        failing = true
        return false
      }
      unsent.shift()
    }
    failing = false
    return true
  }

  function take(): Batch[] {
    const counts: UsageCount[] = []
    for (const [day, partners] of days) {
      for (const [partner, endpoints] of partners) {
        for (const [endpoint, tally] of endpoints) counts.push({ partner, day, endpoint, ...tally })
      }
    }
    days.clear()
    counters = 0
    current = undefined
    const batches: Batch[] = []
    for (let start = 0; start < counts.length; start += maxWritten) {
      batches.push({ id: drawId('use_'), counts: counts.slice(start, start + maxWritten) })
    }
    return batches
  }

  function at(day: string): Day {
    const known = days.get(day)
    if (known !== undefined) return known
    const added: Day = new Map()
    days.set(day, added)
    return added
  }

  function find(day: Day, partner: string, endpoint: string): Tally | undefined {
    const tally = day.get(partner)?.get(endpoint)
    if (tally !== undefined || counters >= maxCounters) return tally
    let endpoints = day.get(partner)
    if (endpoints === undefined) day.set(partner, endpoints = new Map())
    const added = { requests: 0, errors: 0 }
    endpoints.set(endpoint, added)
    counters++
    return added
  }

  return {
    count(partner, endpoint, status, now) {
      if (current === undefined || now < startsAt || now >= startsAt + msPerDay) {
        current = at(dayOf(now))
        startsAt = Math.floor(now / msPerDay) * msPerDay
        behind.wake()
      }
      const tally = find(current, partner, endpoint)
      if (tally === undefined) return
      tally.requests++
      if (status >= 400) tally.errors++
    },
    flush: behind.flush,
  }
}
