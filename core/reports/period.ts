import { MS_PER_DAY, startOfDay, utcDay } from '../lib/time.ts'

const defaultDays = 30
const maxDays = 366

/** Days, both inclusive, `YYYY-MM-DD` in UTC. */
export interface Period {
  readonly from: string
  readonly to: string
}

/** Whether a text is a calendar date of the years 0001 to 9999, `YYYY-MM-DD`. */
export function isCalendarDay(text: string): boolean {
  return text > '0001' && !Number.isNaN(startOfDay(text))
}

/**
 * Fills in the bounds of a period. Without `from` it has 30 days; without `to` it ends today, or after 366 days.
 * @param nameOfTo The name of `to` in messages.
 * @returns An error message about `from` when it is after the end or the period is longer than 366 days.
 */
export function resolvePeriod(
  from: string | undefined,
  to: string | undefined,
  now: number,
  nameOfTo = 'to',
): Period | string {
  const today = utcDay(now)
  if (from === undefined) {
    const end = to ?? today
    return { from: utcDay(startOfDay(end) - (defaultDays - 1) * MS_PER_DAY), to: end }
  }
  if (from > (to ?? today)) {
    return to === undefined ? 'must not be after today in UTC' : `must not be after ${nameOfTo}`
  }
  const last = startOfDay(from) + (maxDays - 1) * MS_PER_DAY
  if (to === undefined) return { from, to: utcDay(Math.min(last, startOfDay(today))) }
  return startOfDay(to) <= last ? { from, to } : `must not begin a period of more than ${maxDays} days`
}

/** Every day of a period, in order. */
export function daysIn({ from, to }: Period): string[] {
  const start = startOfDay(from)
  return Array.from(
    { length: (startOfDay(to) - start) / MS_PER_DAY + 1 },
    (_, index) => utcDay(start + index * MS_PER_DAY),
  )
}
