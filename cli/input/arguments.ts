/** Parsers of what options say. */
import { InvalidArgumentError } from 'commander'
import { parseDuration } from '../../core/admin/duration.ts'
import { Refusal } from '../../core/admin/refusal.ts'
import { parseInstant } from '../../core/content/instant.ts'
import { nameService } from '../../core/service-names.ts'

/** A parser that says the rule of whatever `read` refuses or gives `undefined` for. */
export function parserOf<T>(rule: string, read: (text: string) => T | undefined): (text: string) => T {
  return (text) => {
    try {
      const value = read(text)
      if (value !== undefined) return value
    } catch (error) {
      if (!(error instanceof Refusal || error instanceof RangeError)) throw error
    }
    throw new InvalidArgumentError(rule)
  }
}

/** A parser of whole numbers from `min` to `max`. */
export function integerBetween(min: number, max: number): (text: string) => number {
  return parserOf(`It has to be a whole number from ${min} to ${max}.`, (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN
    return value >= min && value <= max ? value : undefined
  })
}

/** A service's own name, as it stands in paths and headers. */
export const serviceName: (text: string) => string = parserOf(
  'It is of lower-case letters, digits and -, a letter first.',
  (text) => nameService(text).name,
)

/** A duration in milliseconds, 0 or more. */
export const duration: (text: string) => number = parserOf(
  'It is 0, or a whole number and s, m, h or d, such as 24h, up to 36525d.',
  parseDuration,
)

/** When something ends, as an option says it: the instant in milliseconds since the epoch, for the present given. */
export type End = (now: number) => number

/** When something ends: a duration from now on, a date whose day (UTC) is the last one, or an instant. */
export const end: (text: string) => End = parserOf(
  'It is a duration such as 90d (from 1s to 36525d), a date such as 2027-06-30, or an instant such as ' +
    '2027-06-30T12:00:00Z.',
  (text) => {
    const instant = parseInstant(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T23:59:59.999Z` : text)
    if (instant !== undefined) return () => instant
    const ms = parseDuration(text)
    return ms > 0 ? (now) => now + ms : undefined
  },
)
