import { createFairShare } from '../lib/fair-share.ts'
import { drawId } from '../lib/ids.ts'
import { MS_PER_DAY, utcDay } from '../lib/time.ts'
import { delay } from '../lib/promise.ts'
import { createWriteBehind } from '../lib/write-behind.ts'
import type { Key } from '../model.ts'
import type { RecordedProblem, Reports, UsageCount } from '../ports/reports.ts'
import { createProblemLog, type ProblemLog } from './problem-log.ts'

/** Counts the requests of keys. */
export interface UsageCounter {
  /** @param now The instant of the request, milliseconds since the epoch, which decides the day it counts for. */
  count(key: CountedKey, endpoint: string, status: number, now: number): void
  /** Records the problem of a request that is counted, see `createProblemLog`. */
  readonly recordProblem: ProblemLog['add']
  /** Writes soon. */
  wake(): void
  /** Writes what is pending. Never rejects. */
  flush(): Promise<void>
  /** Writes what is pending for the last time. Never rejects. */
  close(): Promise<void>
  /** How much was not recorded because no place was free, since the start. */
  dropped(): { readonly requests: number; readonly problems: number }
}

/** How long a write waits for more counts: reports show them within 5 s, also when the store is slow. */
const writeDelayMs = 2_000
/** A write of keys that are all over a large SQLite file takes some 5 ms, in which a server answers nothing else. */
const maxCountsPerWrite = 100
/** A problem is in three indexes, and the problems of its hour are read with it. */
const maxProblemsPerWrite = 25

/** Counts and problems that were sent, kept unchanged until the store has them. */
interface Batch {
  readonly id: string
  readonly counts: readonly UsageCount[]
  readonly problems: readonly RecordedProblem[]
}

/**
 * Counts requests in memory and writes the counts in the background, with the problems of requests. A failed write is
 * repeated under the same batch id before anything else is written, and endpoints are recorded last.
 *
 * @param onFailure Called for the first of several failed writes in a row.
 * @param maxCounters The most counters in memory. Four fifths are for keys, and partners share them fairly: beyond
 * its share, requests of a partner are counted without the key, and those of its test keys not at all. When all are
 * used up, requests that need another counter are not counted.
 */
export function createUsageCounter(
  source: Pick<Reports, 'recordUsage'> & { readonly recordEndpoints?: () => Promise<void> },
  onFailure: (error: unknown) => void = () => undefined,
  maxCounters = 50_000,
): UsageCounter {
  const counters = createCounters(maxCounters)
  const problems = createProblemLog()
  let unsent: Batch[] = []
  let isFailing = false

  const writeBehind = createWriteBehind(writeDelayMs, async () => {
    try {
      // What the last write has left comes first.
      await send()
      unsent = toBatches(counters.drain(), problems.drain())
      await send()
      await source.recordEndpoints?.()
      isFailing = false
    } catch (error) {
      if (!isFailing) onFailure(error)
      isFailing = true
    }
    return !isFailing
  })

  async function send(): Promise<void> {
    for (let batch = unsent[0]; batch !== undefined; batch = unsent[0]) {
      await source.recordUsage(batch.counts, batch.id, undefined, batch.problems)
      unsent.shift()
      // A store in this process writes synchronously: requests are answered between its batches.
      if (unsent.length > 0) await delay(0)
    }
  }

  return {
    count(key, endpoint, status, now) {
      counters.count(key, endpoint, status >= 400, now)
      writeBehind.wake()
    },
    recordProblem: problems.add,
    wake: writeBehind.wake,
    flush: writeBehind.flush,
    close: writeBehind.close,
    dropped: () => ({ requests: counters.dropped(), problems: problems.dropped() }),
  }
}

function toBatches(counts: readonly UsageCount[], problems: readonly RecordedProblem[]): Batch[] {
  const batches: Batch[] = []
  const size = Math.max(counts.length / maxCountsPerWrite, problems.length / maxProblemsPerWrite)
  for (let place = 0; place < size; place++) {
    const rowsOf = <Row>(rows: readonly Row[], most: number) => rows.slice(place * most, (place + 1) * most)
    batches.push({
      id: drawId('use_'),
      counts: rowsOf(counts, maxCountsPerWrite),
      problems: rowsOf(problems, maxProblemsPerWrite),
    })
  }
  return batches
}

interface Counter extends UsageCount {
  requests: number
  errors: number
}

type CountedKey = Pick<Key, 'id' | 'partner' | 'environment'>

/**
 * One counter for each day, endpoint and key. Nested, because joining a key would slow every request; the endpoint
 * comes before the key, because a map or list for each of many keys would take more memory than the counters.
 */
function createCounters(maxCounters: number) {
  const days = new Map<string, Map<string, Map<string, Counter>>>()
  /** The rest is for partners, whose reports need no key. */
  const share = createFairShare(maxCounters * 0.8)
  let dropped = 0
  let size = 0
  let day = ''
  let dayStart = NaN
  let endpoints = new Map<string, Map<string, Counter>>()

  function selectDay(now: number): void {
    day = utcDay(now)
    dayStart = Math.floor(now / MS_PER_DAY) * MS_PER_DAY
    endpoints = days.get(day) ?? new Map()
    days.set(day, endpoints)
  }

  /** @param keyId `undefined` to count for the partner alone. */
  function counterFor(
    { partner, environment }: CountedKey,
    keyId: string | undefined,
    endpoint: string,
  ): Counter | undefined {
    // No id of a key has a slash.
    const name = keyId ?? `/${partner}`
    let counters = endpoints.get(endpoint)
    if (counters === undefined) endpoints.set(endpoint, counters = new Map())
    const counter = counters.get(name)
    if (counter !== undefined) return counter
    if (keyId === undefined ? size >= maxCounters : !share.take(partner)) return undefined
    size++
    const added = { partner, keyId, environment, day, endpoint, requests: 0, errors: 0 }
    counters.set(name, added)
    return added
  }

  return {
    count(key: CountedKey, endpoint: string, isError: boolean, now: number): void {
      if (!(now >= dayStart && now < dayStart + MS_PER_DAY)) selectDay(now)
      let counter = counterFor(key, key.id, endpoint)
      if (key.environment === 'live') counter ??= counterFor(key, undefined, endpoint)
      if (counter === undefined) {
        dropped++
        return
      }
      counter.requests++
      if (isError) counter.errors++
    },

    drain(): UsageCount[] {
      const counts = [...days.values()].flatMap((endpoints) =>
        [...endpoints.values()].flatMap((counters) => [...counters.values()])
      )
      days.clear()
      share.clear()
      size = 0
      dayStart = NaN
      return counts
    },

    dropped: () => dropped,
  }
}
