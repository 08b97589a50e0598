import { InvalidArgumentError } from 'commander'

/** A parser of whole numbers from `min` to `max`. */
export function integerBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It has to be a whole number from ${min} to ${max}.`)
  }
}
