/** The time at which keys expire and content falls due. */
export interface Clock {
  /**
   * Milliseconds since the epoch on the store's clock, where machines share the store; else on this machine's. Monotonic.
   * @param elapsed `performance.now()`, for callers that have it. The date is then read once a millisecond at most.
   */
  now(elapsed?: number): number
  /** Milliseconds by which this machine's clock is ahead of the store's; negative when it is behind. */
  skewMs(): number
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

/**
 * @param read The last reading of the store's clock. Its round trip bounds its precision: a reading within the known
 * bounds does not move the clock.
 */
export function createClock(read: () => ClockReading | undefined = () => undefined): Clock {
  /** The date at the zero of `performance.now()`, by the latest date that this machine's clock has shown. */
  let start = -Infinity
  let reading: ClockReading | undefined
  let offset = 0
  let today = -Infinity
  let dateReadAt = -Infinity

  function now(given?: number): number {
    const elapsed = given ?? performance.now()
    // Reading the date takes 3 % of the time of a cached response.
    if (given === undefined || elapsed - dateReadAt >= 1) {
      today = Date.now()
      dateReadAt = elapsed
      // `performance.now()` is read after the date: a pause between the two must not advance the clock.
      if (today - elapsed > start) start = Math.max(start, today - performance.now())
    }
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
