import { InvalidArgumentError } from 'commander'
import { parseDuration } from '../../core/admin/duration.ts'
import { Refusal } from '../../core/admin/refusal.ts'

/** Reads the duration of an option. @returns milliseconds, 0 or more. @throws {InvalidArgumentError} */
export function duration(text: string): number {
  try {
    return parseDuration(text)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new InvalidArgumentError('It is 0, or a whole number and s, m, h or d, such as 24h, up to 36525d.')
  }
}

/** Reads the duration of an option. @returns milliseconds, 1 or more. @throws {InvalidArgumentError} */
export function positiveDuration(text: string): number {
  try {
    const ms = parseDuration(text)
    if (ms > 0) return ms
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
  }
  throw new InvalidArgumentError('It is a whole number and s, m, h or d, such as 90d, from 1s to 36525d.')
}
