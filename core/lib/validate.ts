/** The longest delay that timers support, in milliseconds. */
export const MAX_TIMER_MS: number = 2 ** 31 - 1

/**
 * @returns `value`.
 * @throws {RangeError} unless it is an integer from `min` to `max`; the message starts with `name`.
 */
export function assertInteger(name: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new RangeError(`${name} must be an integer from ${min} to ${max}, and ${value} is not.`)
}
