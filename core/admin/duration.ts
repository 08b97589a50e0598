import { echo } from './echo.ts'
import { Refusal } from './refusal.ts'

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A hundred years, in milliseconds: sums with the present stay within what RFC 3339 can say. */
export const MAX_DURATION_MS: number = 36_525 * 86_400_000

/**
 * Reads a duration: an integer and `s`, `m`, `h` or `d`, or `0`; at most a hundred years.
 *
 * @returns Milliseconds, 0 or more.
 * @throws {Refusal} `invalid_duration`
 */
export function parseDuration(text: string): number {
  if (text === '0') return 0
  const [, count = '', unit = ''] = /^(\d{1,12})([smhd])$/.exec(text) ?? []
  const duration = Number(count) * (unitMs[unit] ?? NaN)
  if (duration <= MAX_DURATION_MS) return duration
  throw new Refusal(
    'invalid_duration',
    `A duration is 0, or a whole number and s, m, h or d, such as 24h, up to 36525d; ${echo(text)} is not.`,
  )
}
