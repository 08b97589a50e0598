import type { MaybePromise } from '../lib/promise.ts'
import type { Revision } from '../ports/facts.ts'

/** Keeps knowing the revision, so that nothing older than the bound is ever used. */
export interface RevisionCache {
  /**
   * A revision that was current no longer than the bound ago. The object stays the same for as long as
   * nothing was changed.
   * @param now Milliseconds on a clock that is never set back.
   * @param date Milliseconds on the calendar, for whoever has looked already.
   * @throws what the source threw, when the revision can't be confirmed within the bound.
   */
  get(now: number, date?: number): MaybePromise<Revision>
  /**
   * Asks the source now, whatever is known.
   * @returns The revision that is used from then on, or a later one.
   * @throws what the source threw.
   */
  revalidate(now: number): MaybePromise<Revision>
  /** Uses nothing any more that was asked for before. */
  invalidate(now: number): void
  /** Since when and until when it goes on without a source that did not answer when it was asked last. */
  staleWindow(now: number): StaleWindow | undefined
}

/** A time in which what is known is used although nobody confirms it. */
export interface StaleWindow {
  /** When the source confirmed last. */
  readonly since: number
  /** From when on nothing is used any more. */
  readonly until: number
}

/** How old what is known may be. */
export interface StalenessBounds {
  /** Milliseconds, 0–10,000; 0 asks for every request. */
  readonly maxStalenessMs: number
  /** Milliseconds beyond that for which it is used while the source does not answer (RFC 5861 §4). Default 0: none. */
  readonly staleIfErrorMs?: number
}

/** Who is told what becomes of the source. */
export interface RevisionListeners {
  /** The revision turned out to be another than the one before. */
  onChange?(): void
  /** The source did not answer, for the first time since it did. */
  onUnavailable?(error: unknown): void
  /** The source answers again. */
  onRecovered?(): void
}

/** A source that does not answer, while nobody waits for it, is asked again after this many milliseconds. */
const outageRetryMs = 1_000

/** When something was, on the clock of `now` and on the calendar: while a machine sleeps, only the latter goes on. */
interface Timestamp {
  readonly at: number
  readonly date: number
}

const never: Timestamp = { at: -Infinity, date: -Infinity }

/**
 * From half the bound on, a request that comes asks the source again; it waits for the answer only when the
 * bound has passed. A confirmation counts from the moment it was asked for.
 *
 * @param readRevision Reads the revision.
 * @param calendarNow Milliseconds on the calendar, which may be set: forward, it has the source asked once too often.
 */
export function createRevisionCache(
  readRevision: () => MaybePromise<Revision>,
  { maxStalenessMs, staleIfErrorMs = 0 }: StalenessBounds,
  listeners: RevisionListeners = {},
  calendarNow: () => number = Date.now,
): RevisionCache {
  let current: Revision | undefined
  let confirmedAt = never
  let pending: Promise<Revision> | undefined
  let lastReadAt = never
  let isDown = false

  function age(timestamp: Timestamp, now: number, date: number = calendarNow()): number {
    return Math.max(now - timestamp.at, date - timestamp.date)
  }

  function recordRevision(revision: Revision, startedAt: Timestamp): Revision {
    if (current === undefined || current.facts !== revision.facts || current.content !== revision.content) {
      if (startedAt.at >= confirmedAt.at) {
        current = revision
        listeners.onChange?.()
      }
    }
    if (startedAt.at > confirmedAt.at) {
      confirmedAt = startedAt
      if (isDown) listeners.onRecovered?.()
      isDown = false
    }
    return current ?? revision
  }

  function recordFailure(error: unknown, startedAt: Timestamp): never {
    if (startedAt.at >= confirmedAt.at) {
      if (!isDown) listeners.onUnavailable?.(error)
      isDown = true
    }
    throw error
  }

  function fetchRevision(now: number): MaybePromise<Revision> {
    let result: MaybePromise<Revision>
    const startedAt = lastReadAt = { at: now, date: calendarNow() }
    try {
      result = readRevision()
    } catch (error) {
      return recordFailure(error, startedAt)
    }
    if (!(result instanceof Promise)) return recordRevision(result, startedAt)
    const read: Promise<Revision> = result
      .then(
        (revision) => recordRevision(revision, startedAt),
        (error: unknown) => recordFailure(error, startedAt),
      )
      .finally(() => {
        if (pending === read) pending = undefined
      })
    pending = read
    return read
  }

  /** Asks while others are answered from what is known. */
  function fetchInBackground(now: number): void {
    try {
      const read = fetchRevision(now)
      if (read instanceof Promise) read.catch(() => undefined)
    } catch {
      // What is known may still be used, and the next request asks again.
    }
  }

  function staleWindow(now: number): StaleWindow | undefined {
    if (staleIfErrorMs === 0 || !isDown) return undefined
    const usableMs = maxStalenessMs + staleIfErrorMs
    return age(confirmedAt, now) < usableMs
      ? { since: confirmedAt.at, until: confirmedAt.at + usableMs }
      : undefined
  }

  /** The answer, or what is known instead of a failure while that may be used. */
  function orStale(readFresh: () => MaybePromise<Revision>, now: number): MaybePromise<Revision> {
    const fallBack = (error: unknown): Revision => {
      if (current !== undefined && staleWindow(now) !== undefined) return current
      throw error
    }
    try {
      const read = readFresh()
      return read instanceof Promise ? read.catch(fallBack) : read
    } catch (error) {
      return fallBack(error)
    }
  }

  return {
    get(now, date) {
      const ageMs = age(confirmedAt, now, date)
      if (current !== undefined && ageMs < maxStalenessMs) {
        if (ageMs >= maxStalenessMs / 2 && pending === undefined) fetchInBackground(now)
        return current
      }
      const answer = (): MaybePromise<Revision> =>
        pending !== undefined && age(lastReadAt, now) < maxStalenessMs ? pending : fetchRevision(now)
      if (staleIfErrorMs === 0) return answer()
      if (current !== undefined && staleWindow(now) !== undefined) {
        if (pending === undefined && age(lastReadAt, now) >= outageRetryMs) fetchInBackground(now)
        return current
      }
      return orStale(answer, now)
    },
    revalidate: fetchRevision,
    invalidate(now) {
      current = pending = undefined
      confirmedAt = { at: now, date: calendarNow() }
    },
    staleWindow,
  }
}

/** The longest that known keys may go on working while the store does not answer: an hour. */
export const MAX_STALE_IF_ERROR_SECONDS = 3_600
