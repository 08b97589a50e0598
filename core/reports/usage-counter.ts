import { drawId } from '../lib/ids.ts'
import { MS_PER_DAY, utcDay } from '../lib/time.ts'
import { createWriteBehind } from '../lib/write-behind.ts'
import type { Reports, UsageCount } from '../ports/reports.ts'

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
const maxCountsPerWrite = 500

interface EndpointCounter {
  requests: number
  errors: number
}

/** Counts that have been sent, and are what they are until they have arrived. */
interface Batch {
  readonly id: string
  readonly counts: readonly UsageCount[]
}

/** By partner, then by endpoint. */
type DayCounters = Map<string, Map<string, EndpointCounter>>

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
  const days = new Map<string, DayCounters>()
  let unsent: Batch[] = []
  let counterCount = 0
  let isFailing = false
  // The day that was counted on last.
  let currentDay: DayCounters | undefined
  let dayStart = 0

  const writeBehind = createWriteBehind(writeDelayMs, async () => {
    const hadUnsent = unsent.length > 0
    if (!hadUnsent) unsent = drain()
    if (!await send()) return false
    if (!hadUnsent) return true
    unsent = drain()
    return send()
  })

  async function send(): Promise<boolean> {
    for (let batch = unsent[0]; batch !== undefined; batch = unsent[0]) {
      try {
        await source.recordUsage(batch.counts, batch.id)
      } catch (error) {
        if (!isFailing) onFailure(error)
        isFailing = true
        return false
      }
      unsent.shift()
    }
    isFailing = false
    return true
  }

  function drain(): Batch[] {
    const counts: UsageCount[] = []
    for (const [day, partners] of days) {
      for (const [partner, endpoints] of partners) {
        for (const [endpoint, counter] of endpoints) counts.push({ partner, day, endpoint, ...counter })
      }
    }
    days.clear()
    counterCount = 0
    currentDay = undefined
    const batches: Batch[] = []
    for (let start = 0; start < counts.length; start += maxCountsPerWrite) {
      batches.push({ id: drawId('use_'), counts: counts.slice(start, start + maxCountsPerWrite) })
    }
    return batches
  }

  function countersOn(day: string): DayCounters {
    const known = days.get(day)
    if (known !== undefined) return known
    const added: DayCounters = new Map()
    days.set(day, added)
    return added
  }

  function counterFor(day: DayCounters, partner: string, endpoint: string): EndpointCounter | undefined {
    const counter = day.get(partner)?.get(endpoint)
    if (counter !== undefined || counterCount >= maxCounters) return counter
    let endpoints = day.get(partner)
    if (endpoints === undefined) day.set(partner, endpoints = new Map())
    const added = { requests: 0, errors: 0 }
    endpoints.set(endpoint, added)
    counterCount++
    return added
  }

  return {
    count(partner, endpoint, status, now) {
      if (currentDay === undefined || now < dayStart || now >= dayStart + MS_PER_DAY) {
        currentDay = countersOn(utcDay(now))
        dayStart = Math.floor(now / MS_PER_DAY) * MS_PER_DAY
        writeBehind.wake()
      }
      const counter = counterFor(currentDay, partner, endpoint)
      if (counter === undefined) return
      counter.requests++
      if (status >= 400) counter.errors++
    },
    flush: writeBehind.flush,
  }
}
