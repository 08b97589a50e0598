import type { MaybePromise } from '../lib/promise.ts'
import type { Revision } from '../ports/facts.ts'

/** How old the revision may be. */
export interface StalenessBounds {
  /** Milliseconds, 0–10,000; 0 reads it for every request. */
  readonly maxStalenessMs: number
  /** Milliseconds beyond that for which it is used while the source is down (RFC 5861 §4). Default 0. */
  readonly staleIfErrorMs?: number
}

/** A time in which an unconfirmed revision is used because the source is down, on the clock of `now`. */
export interface StaleWindow {
  /** When the source last confirmed it. */
  readonly since: number
  readonly until: number
}

/** While the source is down and the revision is used, it is read again after this time. */
const outageRetryMs = 1_000

/** An instant on the clock of `now` and on the calendar: only the latter advances while a machine sleeps. */
interface Timestamp {
  readonly at: number
  readonly date: number
}

const never: Timestamp = { at: -Infinity, date: -Infinity }

export type RevisionCache = ReturnType<typeof createRevisionCache>

/**
 * Caches the revision, which counts as confirmed from the moment at which its read started. It is
 * - missing until the first read and after `invalidate`: requests wait for a read.
 * - fresh up to half of `maxStalenessMs`: requests use it.
 * - aging up to `maxStalenessMs`: requests use it, and one of them reads it again in the background.
 * - expired then: requests wait for a read. While reads fail, they use it for up to `staleIfErrorMs`, and one of them reads
 *   it again every second.
 *
 * @param calendarNow Milliseconds on the calendar. When it is set forward, the source is read once too often.
 */
export function createRevisionCache(
  readRevision: () => MaybePromise<Revision>,
  { maxStalenessMs, staleIfErrorMs = 0 }: StalenessBounds,
  { onChange, onUnavailable, onRecovered }: {
    onChange?(): void
    /** The first failed read since a successful one. */
    onUnavailable?(error: unknown): void
    onRecovered?(): void
  } = {},
  calendarNow: () => number = Date.now,
) {
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
        onChange?.()
      }
    }
    if (startedAt.at > confirmedAt.at) {
      confirmedAt = startedAt
      if (isDown) onRecovered?.()
      isDown = false
    }
    return current ?? revision
  }

  function recordFailure(error: unknown, startedAt: Timestamp): never {
    if (startedAt.at >= confirmedAt.at) {
      if (!isDown) onUnavailable?.(error)
      isDown = true
    }
    throw error
  }

  /** @returns The revision that is used from then on; rejects with what the source threw. */
  function revalidate(now: number): MaybePromise<Revision> {
    const startedAt = lastReadAt = { at: now, date: calendarNow() }
    let read: MaybePromise<Revision>
    try {
      read = readRevision()
    } catch (error) {
      read = Promise.reject(error)
    }
    if (!(read instanceof Promise)) return recordRevision(read, startedAt)
    const recorded: Promise<Revision> = read
      .then(
        (revision) => recordRevision(revision, startedAt),
        (error: unknown) => recordFailure(error, startedAt),
      )
      .finally(() => {
        if (pending === recorded) pending = undefined
      })
    return pending = recorded
  }

  function revalidateInBackground(now: number): void {
    const read = revalidate(now)
    if (read instanceof Promise) read.catch(() => undefined)
  }

  /** The time in which the revision is used while the source is down; `undefined` when that does not apply. */
  function staleWindow(now: number): StaleWindow | undefined {
    if (staleIfErrorMs === 0 || !isDown) return undefined
    const usableMs = maxStalenessMs + staleIfErrorMs
    return age(confirmedAt, now) < usableMs
      ? { since: confirmedAt.at, until: confirmedAt.at + usableMs }
      : undefined
  }

  /** The revision, confirmed within the bound. `now` is on a monotonic clock, and `date` on the calendar. */
  function get(now: number, date?: number): MaybePromise<Revision> {
    const ageMs = age(confirmedAt, now, date)
    if (current !== undefined && ageMs < maxStalenessMs) {
      if (ageMs >= maxStalenessMs / 2 && pending === undefined) revalidateInBackground(now)
      return current
    }
    if (current !== undefined && staleWindow(now) !== undefined) {
      if (pending === undefined && age(lastReadAt, now) >= outageRetryMs) revalidateInBackground(now)
      return current
    }
    const read = pending !== undefined && age(lastReadAt, now) < maxStalenessMs ? pending : revalidate(now)
    if (staleIfErrorMs === 0 || !(read instanceof Promise)) return read
    return read.catch((error: unknown) => {
      if (current !== undefined && staleWindow(now) !== undefined) return current
      throw error
    })
  }

  return {
    get,
    revalidate,
    staleWindow,
    isAvailable: (): boolean => !isDown,
    /** Milliseconds since the source confirmed the revision; `undefined` before. */
    ageMs: (now: number): number | undefined => current && age(confirmedAt, now),
    /** Uses nothing any more that was read before `now`. */
    invalidate(now: number): void {
      current = pending = undefined
      confirmedAt = { at: now, date: calendarNow() }
    },
  }
}
