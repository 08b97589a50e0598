import { drawId } from '../lib/ids.ts'
import { MS_PER_DAY, utcDay } from '../lib/time.ts'
import { createWriteBehind } from '../lib/write-behind.ts'
import type { Reports, UsageCount } from '../ports/reports.ts'

export type UsageCounter = ReturnType<typeof createUsageCounter>

/** How long a write waits for more counts: reports show them within 5 s, also when the store is slow. */
const writeDelayMs = 2_000
/** Limits a write, so that its transaction does not block others for long. */
const maxCountsPerWrite = 500

/** Counts that were sent, kept unchanged until the store has them. */
interface Batch {
  readonly id: string
  readonly counts: readonly UsageCount[]
}

/**
 * Counts requests in memory and writes the counts in the background. A failed write is repeated under the same batch id
 * before anything else is written.
 *
 * @param onFailure Called for the first of several failed writes in a row.
 * @param maxCounters The most counters in memory. While the store is down and they are used up, requests that need
 * another one are not counted.
 */
export function createUsageCounter(
  source: Pick<Reports, 'recordUsage'>,
  onFailure: (error: unknown) => void = () => undefined,
  maxCounters = 50_000,
) {
  const counters = createCounters(maxCounters)
  let unsent: Batch[] = []
  let isFailing = false

  const writeBehind = createWriteBehind(writeDelayMs, async () => {
    const hadUnsent = unsent.length > 0
    if (!hadUnsent) unsent = toBatches(counters.drain())
    if (!await send()) return false
    if (!hadUnsent) return true
    unsent = toBatches(counters.drain())
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

  return {
    /** @param now The instant of the request, milliseconds since the epoch, which decides the day it counts for. */
    count(partner: string, endpoint: string, status: number, now: number): void {
      counters.count(partner, endpoint, status >= 400, now)
      writeBehind.wake()
    },
    flush: writeBehind.flush,
  }
}

function toBatches(counts: readonly UsageCount[]): Batch[] {
  const batches: Batch[] = []
  for (let start = 0; start < counts.length; start += maxCountsPerWrite) {
    batches.push({ id: drawId('use_'), counts: counts.slice(start, start + maxCountsPerWrite) })
  }
  return batches
}

interface Counter extends UsageCount {
  requests: number
  errors: number
}

/** One counter for each day, partner and endpoint. Nested maps, because joining a key would slow every request. */
function createCounters(maxCounters: number) {
  const days = new Map<string, Map<string, Map<string, Counter>>>()
  let size = 0
  let day = ''
  let dayStart = NaN
  let partners = new Map<string, Map<string, Counter>>()

  function selectDay(now: number): void {
    day = utcDay(now)
    dayStart = Math.floor(now / MS_PER_DAY) * MS_PER_DAY
    partners = days.get(day) ?? new Map()
    days.set(day, partners)
  }

  function addCounter(partner: string, endpoint: string): Counter | undefined {
    if (size >= maxCounters) return undefined
    size++
    const counter = { partner, day, endpoint, requests: 0, errors: 0 }
    const endpoints = partners.get(partner)
    if (endpoints === undefined) partners.set(partner, new Map([[endpoint, counter]]))
    else endpoints.set(endpoint, counter)
    return counter
  }

  return {
    count(partner: string, endpoint: string, isError: boolean, now: number): void {
      if (!(now >= dayStart && now < dayStart + MS_PER_DAY)) selectDay(now)
      const counter = partners.get(partner)?.get(endpoint) ?? addCounter(partner, endpoint)
      if (counter === undefined) return
      counter.requests++
      if (isError) counter.errors++
    },

    drain(): UsageCount[] {
      const counts = [...days.values()].flatMap((partners) =>
        [...partners.values()].flatMap((endpoints) => [...endpoints.values()])
      )
      days.clear()
      size = 0
      dayStart = NaN
      return counts
    },
  }
}
