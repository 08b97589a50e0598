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

const msPerDay = 86_400_000
const twoDigits = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'))
const threeDigits = Array.from({ length: 1000 }, (_, number) => String(number).padStart(3, '0'))

/** Dates by day since the epoch. */
const dates = new Map<number, string>()
/** 27 years of them. */
const maxDates = 10_000

/**
 * An instant as RFC 3339 text in UTC with milliseconds, as `toISOString` writes it. A page has forty of them, and
 * `toISOString` takes three times as long.
 *
 * @param instant Whole milliseconds since the epoch.
 */
export function rfc3339(instant: number): string {
  const day = Math.floor(instant / msPerDay)
  const milliseconds = instant - day * msPerDay
  const seconds = Math.floor(milliseconds / 1000)
  const minutes = Math.floor(seconds / 60)
  const time = `${twoDigits[Math.floor(minutes / 60)]}:${twoDigits[minutes % 60]}:${twoDigits[seconds % 60]}`
  return `${dates.get(day) ?? dateOf(day)}T${time}.${threeDigits[milliseconds % 1000]}Z`
}

function dateOf(day: number): string {
  const iso = new Date(day * msPerDay).toISOString()
  const date = iso.slice(0, iso.indexOf('T'))
  if (dates.size >= maxDates) dates.clear()
  dates.set(day, date)
  return date
}

/** An instant that may be absent, as the wire says it. */
export function optionalRfc3339(instant: number | undefined): string | null {
  return instant === undefined ? null : rfc3339(instant)
}

const rfc3339Pattern =
  /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.(\d+))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i

/**
 * Reads an instant in RFC 3339 §5.6 with an offset. Fractions beyond milliseconds are cut off. Leap seconds
 * (`:60`) and dates that are in no calendar are refused.
 *
 * @returns Milliseconds since the epoch, or undefined; never one that falls outside the years 0–9999 in UTC.
 */
export function parseInstant(text: string): number | undefined {
  const [, date = '', time = '', fraction = '', sign, hours, minutes] = rfc3339Pattern.exec(text) ?? []
  const local = Date.parse(`${date}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`)
  // Engines differ in whether they turn 30 February into 2 March or refuse it.
  if (Number.isNaN(local) || new Date(local).toISOString().slice(0, 19) !== `${date}T${time}`) {
    return undefined
  }
  const offset = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000
  const instant = sign === '-' ? local + offset : local - offset
  return instant >= firstInstant && instant <= lastInstant ? instant : undefined
}

const firstInstant = Date.parse('0000-01-01T00:00:00.000Z')
const lastInstant = Date.parse('9999-12-31T23:59:59.999Z')

/** The day of an instant, `YYYY-MM-DD` in UTC. */
export function utcDay(instant: number): string {
  return new Date(instant).toISOString().slice(0, 10)
}
