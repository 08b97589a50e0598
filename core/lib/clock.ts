import { assertKind } from './options.ts'

/** The time at which keys expire and content falls due. */
export interface Clock {
  /**
   * Milliseconds since the epoch on the store's clock, where machines share the store; else on this machine's. Does
   * not go back, unless the store's clock says so or this machine's was set back a minute ago.
   * @param elapsed `performance.now()`, for callers that have it. The date is then read once a millisecond at most.
   */
  now(elapsed?: number): number
  /** Milliseconds since the epoch on this machine's clock, as the last call of `now` read it. */
  date(): number
  /** Milliseconds by which this machine's clock is ahead of `now`; negative when it is behind. */
  skewMs(): number
  /**
   * The time by which what has expired may be deleted: the earlier one of the store's clock and this machine's, for
   * either may be wrong. `undefined` unless this machine's clock has not jumped for a minute.
   */
  deletionTime(): number | undefined
}

/** A reading of a store's own clock. */
export interface ClockReading {
  /** Milliseconds since the epoch on the store's clock, at some instant between the next two. */
  readonly at: number
  /** When the request was sent, on `performance.now()`. */
  readonly askedAt: number
  /** When the response arrived, on `performance.now()`. */
  readonly answeredAt: number
}

/** What a store says of the time. */
export interface StoreClock {
  /**
   * The last reading of the store's own clock, which reading the revision renews; `undefined` before the first one, and
   * where the store is used by one machine only.
   */
  clock(): ClockReading | undefined
  /** The clock that the store was opened with, in milliseconds since the epoch; `undefined` for this machine's. */
  readonly now: (() => number) | undefined
}

/**
 * The clock that changes of a store, and services on it, follow: the given one, the one that it was opened with,
 * its own, or this machine's.
 *
 * @throws {TypeError} for anything but a function. @throws {RangeError} for one that returns anything but a number.
 */
export function clockOf(store: StoreClock, given?: () => number): Clock {
  const now = given ?? store.now
  if (now === undefined) return createClock(() => store.clock())
  assertKind('clock', now, 'a function')
  // Again with each reading: by a time that is not a number, nothing would expire.
  const read = (): number => {
    const instant: unknown = now()
    if (typeof instant === 'number' && Math.abs(instant) <= maxInstant) return Math.floor(instant)
    throw new RangeError(
      `clock must return milliseconds since the epoch, not ${
        typeof instant === 'number' ? instant : `a ${typeof instant}`
      }.`,
    )
  }
  read()
  return {
    now: read,
    date: Date.now,
    skewMs: () => 0,
    deletionTime: read,
  }
}

/** The last instant of a `Date`. */
const maxInstant = 8.64e15

/** A change of this machine's clock by more than `jumpMs` is believed once it has lasted for `settleMs`. */
const jumpMs = 100
const settleMs = 60_000

/**
 * @param read The last reading of the store's clock. Its round trip bounds its precision: a reading within the known
 * bounds does not move the clock.
 */
export function createClock(read: () => ClockReading | undefined = () => undefined): Clock {
  /**
   * The date at the zero of `performance.now()`, and since when: on this machine's clock, and on one that has jumped.
   */
  let start = NaN
  let since = 0
  let jump: { start: number; since: number } | undefined
  let reading: ClockReading | undefined
  let offset = 0
  let today = -Infinity
  let dateReadAt = -Infinity
  let latest = -Infinity

  function readDate(): void {
    today = Date.now()
    // Read after the date: a pause between the two must not advance the clock.
    const elapsed = performance.now()
    const found = today - elapsed
    if (Math.abs(found - start) <= jumpMs) {
      // The date counts whole milliseconds.
      start = Math.min(Math.max(start, found), found + 1)
      jump = undefined
    } else if (Number.isNaN(start)) {
      start = found
      since = elapsed
    } else if (jump === undefined || Math.abs(found - jump.start) > jumpMs) {
      jump = { start: found, since: elapsed }
    } else if (elapsed - jump.since >= settleMs) {
      if (reading !== undefined) offset += start - found
      start = found
      since = jump.since
      latest = -Infinity
      jump = undefined
    }
  }

  function now(given?: number): number {
    const elapsed = given ?? performance.now()
    if (given === undefined || elapsed - dateReadAt >= 1) {
      readDate()
      dateReadAt = elapsed
    }
    const found = read()
    if (found !== undefined && found !== reading) {
      reading = found
      offset = clampOffset(offset, found, start)
    }
    latest = Math.max(latest, start + elapsed, jump === undefined ? today : -Infinity)
    return Math.floor(latest + offset)
  }

  return {
    now,
    date: () => today,
    skewMs: () => Date.now() - now(),
    deletionTime() {
      readDate()
      const isSettled = jump === undefined && performance.now() - since >= settleMs
      return isSettled ? Math.min(now(), today) : undefined
    },
  }
}

/** The offset within the bounds of a reading. Both clocks count whole milliseconds. */
function clampOffset(offset: number, { at, askedAt, answeredAt }: ClockReading, start: number): number {
  return Math.min(Math.max(offset, at - 1 - (start + answeredAt)), at + 1 - (start + askedAt))
}

/** A slow round trip looks like skew of this size. */
const minReportedSkewMs = 100

/** @param report Called when the skew of a clock begins to exceed the bound. */
export function createSkewWatch(
  clock: Pick<Clock, 'skewMs'>,
  boundMs: number,
  report: (skewMs: number) => void,
) {
  let isSkewed = false
  /** Milliseconds; `undefined` within the bound. */
  function beyondBound(): number | undefined {
    const ms = clock.skewMs()
    return Math.abs(ms) > Math.max(boundMs, minReportedSkewMs) ? ms : undefined
  }
  return {
    beyondBound,
    /** @returns The skew, 0 within the bound. */
    check(): number {
      const skewMs = beyondBound()
      if (skewMs !== undefined && !isSkewed) report(skewMs)
      isSkewed = skewMs !== undefined
      return skewMs ?? 0
    },
  }
}
