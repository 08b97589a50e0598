import process from 'node:process'
import { delay, type MaybePromise } from '../../../core/lib/promise.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import type { SqliteDatabase } from './database.ts'

/** Milliseconds of work after which a search pauses for as long as it took, and other requests are answered. */
export const SLICE_MS = 4
/** Searches of one partner, and of all together, that wait while another one runs in slices. */
const maxWaiting = { partner: 4, all: 32 }

/**
 * Runs a search step by step. Its first slice runs at once; the rest in slices of at most `maxMs` of work together,
 * after all searches that wait already.
 *
 * @throws {StoreError} `overloaded` when it takes longer, or when too many searches wait.
 */
export type TimeSlicer = <T>(partner: string, steps: Iterator<void, T>, maxMs: number) => MaybePromise<T>

export function createTimeSlicer(database: SqliteDatabase): TimeSlicer {
  let last: Promise<unknown> = Promise.resolve()
  const waiting: string[] = []

  function runSlice<T>(steps: Iterator<void, T>, workedMs = startStopwatch()): IteratorResult<void, T> {
    return database.snapshot(() => {
      let step = steps.next()
      while (!step.done && workedMs() < SLICE_MS) step = steps.next()
      return step
    })
  }

  async function finish<T>(steps: Iterator<void, T>, maxMs: number): Promise<T> {
    for (let spentMs = SLICE_MS, elapsedMs = SLICE_MS;; spentMs += elapsedMs) {
      if (spentMs > maxMs) throw searchAbandonedError('takes too long')
      await delay(elapsedMs)
      const workedMs = startStopwatch()
      const step = runSlice(steps, workedMs)
      if (step.done) return step.value
      elapsedMs = workedMs()
    }
  }

  return (partner, steps, maxMs) => {
    const step = runSlice(steps)
    if (step.done) return step.value
    const ofPartner = waiting.filter((other) => other === partner).length
    if (ofPartner >= maxWaiting.partner || waiting.length >= maxWaiting.all) {
      throw searchAbandonedError('would wait too long')
    }
    waiting.push(partner)
    const result = last.then(() => finish(steps, maxMs))
      .finally(() => waiting.splice(waiting.indexOf(partner), 1))
    last = result.catch(() => undefined)
    return result
  }
}

/** Measures processor time, because other processes may keep the machine busy, but at least a quarter of all time. */
function startStopwatch(): () => number {
  const startedAt = performance.now()
  const usedBefore = process.cpuUsage()
  return () => {
    const elapsedMs = performance.now() - startedAt
    const { user, system } = process.cpuUsage(usedBefore)
    return Math.min(elapsedMs, Math.max((user + system) / 1000, elapsedMs / 4))
  }
}

function searchAbandonedError(problem: string): StoreError {
  return new StoreError('overloaded', `A search of the store ${problem}: it was abandoned.`)
}
