import { InvalidArgumentError } from 'commander'
import { parseDuration } from '../../core/admin/duration.ts'
import { Refusal } from '../../core/admin/refusal.ts'
import { parseInstant } from '../../core/content/instant.ts'

/** Reads the duration of an option. @returns milliseconds, 0 or more. @throws {InvalidArgumentError} */
export function duration(text: string): number {
  try {
    return parseDuration(text)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new InvalidArgumentError('It is 0, or a whole number and s, m, h or d, such as 24h, up to 36525d.')
  }
}

/** When something ends, as an option says it: the instant in milliseconds since the epoch, for the present given. */
export type End = (now: number) => number

/**
 * Reads when something ends: a duration from now on, a date whose day (UTC) is the last one, or an instant.
 *
 * @throws {InvalidArgumentError}
 */
export function end(text: string): End {
  const instant = parseInstant(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T23:59:59.999Z` : text)
  if (instant !== undefined) return () => instant
  try {
    const ms = parseDuration(text)
    if (ms > 0) return (now) => now + ms
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
  }
  throw new InvalidArgumentError(
    'It is a duration such as 90d (from 1s to 36525d), a date such as 2027-06-30, or an instant such as ' +
      '2027-06-30T12:00:00Z.',
  )
}
