/** What the options of public functions share: their names, ranges of numbers, and types of web globals. */
import { similarNames } from './similar-names.ts'

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

/** The names of all options of `T`: a list that misses one, or has another, does not compile. */
export type OptionNames<T> = { readonly [Name in keyof T]-?: true }

/**
 * Refuses names that no option has: a misspelt option would be ignored, and some restrict a key.
 *
 * @param where The function that takes the options: `createListener`, `keys.issue`.
 * @throws {TypeError} for an unknown name, with the nearest one, and for a value that is not an object.
 */
export function assertOptions<T extends object>(where: string, given: T, options: OptionNames<T>): void {
  if (typeof given !== 'object' || given === null) {
    throw new TypeError(`${where}: the options must be an object.`)
  }
  const names = Object.keys(options)
  const unknown = Object.keys(given).find((name) => !names.includes(name))
  if (unknown === undefined) return
  const [similar] = similarNames(unknown, names)
  const hint = similar === undefined ? `The options are ${names.join(', ')}.` : `Did you mean "${similar}"?`
  throw new TypeError(`${where}: there is no option "${unknown.slice(0, 80)}". ${hint}`)
}

// The package also exports types to type libraries without web globals (`lib` without `dom`, and no `@types/node`),
// where a plain `Request` does not compile.

/** `URL` of the URL standard, or the little of it that a type library without it can check. */
export type WebUrl = typeof globalThis extends { readonly URL: { readonly prototype: infer T } } ? T
  : { readonly href: string }

/** `AbortSignal` of the DOM standard, or the little of it that a type library without it can check. */
export type WebAbortSignal = typeof globalThis extends
  { readonly AbortSignal: { readonly prototype: infer T } } ? T : { readonly aborted: boolean }

/** `Response` of the Fetch standard; `unknown` under a type library without it. */
export type WebResponse = typeof globalThis extends { readonly Response: { readonly prototype: infer T } } ? T
  : unknown

/** `Request` of the Fetch standard; `unknown` under a type library without it. */
export type WebRequest = typeof globalThis extends { readonly Request: { readonly prototype: infer T } } ? T
  : unknown
