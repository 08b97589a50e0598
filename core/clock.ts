/** What a store told of its own clock. */
export interface ClockReading {
  /** Milliseconds since the epoch on the store's clock, at some instant between the next two. */
  readonly at: number
  /** When the store was asked, on `performance.now()`. */
  readonly askedAt: number
  /** When it had answered, on `performance.now()`. */
  readonly answeredAt: number
}

/** The time by which keys expire and content falls due. */
export interface Clock {
  /**
   * Milliseconds since the epoch: the store's, where machines share it; else this machine's, but never set back.
   *
   * @param elapsed `performance.now()`, for callers that have it at hand.
   */
  now(elapsed?: number): number
  /** Milliseconds by which this machine's clock is ahead of the store's, negative when it is behind. */
  skewMs(): number
}

/**
 * @param read The last reading of the store's clock. A round trip bounds how exact it is: readings that agree with what
 * is known change nothing.
 */
export function createClock(read: () => ClockReading | undefined = () => undefined): Clock {
  /** What this machine's clock showed at the zero of `performance.now()`, by the most advanced of its dates so far. */
  let start = -Infinity
  let reading: ClockReading | undefined
  let offset = 0

  function now(elapsed: number = performance.now()): number {
    const today = Date.now()
    // Read after the date: a pause between the two must not put the clock ahead.
    if (today - elapsed > start) start = Math.max(start, today - performance.now())
    const latest = read()
    if (latest !== undefined && latest !== reading) {
      reading = latest
      // Both clocks count whole milliseconds.
      const least = latest.at - 1 - (start + latest.answeredAt)
      const most = latest.at + 1 - (start + latest.askedAt)
      offset = Math.min(Math.max(offset, least), most)
    }
    return Math.floor(Math.max(today, start + elapsed) + offset)
  }

  return {
    now,
    skewMs: () => read() === undefined ? 0 : Date.now() - now(),
  }
}
