import { utcDay } from '../lib/time.ts'

/** Milliseconds of a day. */
export const msPerDay = 86_400_000

const defaultDays = 30
const maxDays = 366

/** Days, both inclusive, `YYYY-MM-DD`. */
export interface Period {
  readonly from: string
  readonly to: string
}

function dayStart(day: string): number {
  return Date.parse(`${day}T00:00:00.000Z`)
}

/** Whether a text is a date of the calendar, `YYYY-MM-DD`, of the years 0001 to 9999. */
export function isCalendarDay(text: string): boolean {
  const start = /^\d{4}-\d{2}-\d{2}$/.test(text) && text > '0001' ? dayStart(text) : NaN
  // Engines differ in whether they turn 30 February into 2 March or refuse it.
  return !Number.isNaN(start) && utcDay(start) === text
}

/**
 * The period that is asked for: the 30 days that end today unless a bound is given; from `from` alone until
 * today, but no more than 366 days; up to `to` alone, 30 days.
 *
 * @param now Milliseconds since the epoch.
 * @returns What is wrong with `from`, if it is after the end or more than 366 days are asked for.
 */
export function resolvePeriod(
  from: string | undefined,
  to: string | undefined,
  now: number,
): Period | string {
  const today = utcDay(now)
  if (from === undefined) {
    const end = to ?? today
    return { from: utcDay(dayStart(end) - (defaultDays - 1) * msPerDay), to: end }
  }
  if (from > (to ?? today)) {
    return to === undefined ? 'must not be after today in UTC' : 'must not be after to'
  }
  const last = dayStart(from) + (maxDays - 1) * msPerDay
  if (to === undefined) return { from, to: utcDay(Math.min(last, dayStart(today))) }
  return dayStart(to) <= last ? { from, to } : `must not begin a period of more than ${maxDays} days`
}

/** Every day of a period, in order. */
export function daysIn({ from, to }: Period): string[] {
  const start = dayStart(from)
  return Array.from(
    { length: (dayStart(to) - start) / msPerDay + 1 },
    (_, index) => utcDay(start + index * msPerDay),
  )
}
