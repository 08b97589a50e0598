/** What the options of public functions share: their names, and ranges of numbers. */
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

/** Whether a value is what the words of the name say. */
const checksOfKind = {
  'a text': (value: unknown) => typeof value === 'string',
  'a number': (value: unknown) => typeof value === 'number',
  'true or false': (value: unknown) => typeof value === 'boolean',
  'a function': (value: unknown) => typeof value === 'function',
  'an object': (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'a list': (value: unknown) => Array.isArray(value),
  'a list of texts': (value: unknown) =>
    Array.isArray(value) && value.every((each) => typeof each === 'string'),
} as const

/** What a value must be, in words. */
export type Kind = keyof typeof checksOfKind

/** What the value of an option must be; `anything` for one that the function checks by itself. */
export type OptionKind = Kind | `${Kind} or null` | 'anything'

/** The kind of the values of a type. */
type KindOf<T> = [T] extends [string] ? 'a text'
  : [T] extends [number] ? 'a number'
  : [T] extends [boolean] ? 'true or false'
  : [T] extends [(...args: never) => unknown] ? 'a function'
  : [T] extends [readonly string[]] ? 'a list of texts'
  : [T] extends [readonly unknown[]] ? 'a list'
  : 'an object'

/** The kinds of the options of `T`: a list that misses one, has another, or one of another kind does not compile. */
export type OptionKinds<T> = {
  readonly [Name in keyof T]-?:
    | 'anything'
    | (null extends T[Name] ? `${KindOf<NonNullable<T[Name]>>} or null` : KindOf<NonNullable<T[Name]>>)
}

/**
 * Refuses names that no option has, and values of another kind: a misspelt option would be ignored, a text in place
 * of a list read by characters, and some restrict a key.
 *
 * @param where The function that takes the options: `createListener`, `keys.issue`.
 * @throws {TypeError} for an unknown name, with the nearest one, for a value of another kind, and
 * for what is not an object.
 */
export function assertOptions<T extends object>(where: string, given: T, options: OptionKinds<T>): void {
  assertKind(`${where}: the options`, given, 'an object')
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(options, name)) {
      throw new TypeError(`${where}: ${describeUnknown(name, Object.keys(options))}`)
    }
    const kind = (options as Readonly<Record<string, OptionKind>>)[name]!
    if (value !== undefined && kind !== 'anything') assertKind(`${where}: ${name}`, value, kind)
  }
}

function describeUnknown(name: string, names: readonly string[]): string {
  const [similar] = similarNames(name, names)
  const hint = similar === undefined ? `The options are ${names.join(', ')}.` : `Did you mean "${similar}"?`
  return `there is no option "${name.slice(0, 80)}". ${hint}`
}

/**
 * @param name Names the value in the message, which does not repeat it.
 * @throws {TypeError} unless the value is of a kind.
 */
export function assertKind(name: string, value: unknown, kind: Exclude<OptionKind, 'anything'>): void {
  const base = kind.replace(/ or null$/, '') as Kind
  if (checksOfKind[base](value) || value === null && base !== kind) return
  const isList = base.startsWith('a list') && Array.isArray(value)
  throw new TypeError(`${name} must be ${kind}, not ${isList ? 'a list of other values' : kindOf(value)}.`)
}

/**
 * Refuses a value that is not a store, most often the promise of one.
 *
 * @param where The function that takes the store.
 * @throws {TypeError}
 */
export function assertStore(where: string, store: unknown): void {
  assertKind(`${where}: the store`, store, 'an object')
  if (typeof (store as { readonly then?: unknown }).then !== 'function') return
  throw new TypeError(`${where}: the store is a promise; await it first.`)
}

/** The kind of a value, in the words of messages; a number and the like as it is. */
export function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  const kinds: Readonly<Record<string, string>> = { string: 'a text', function: 'a function' }
  return kinds[typeof value] ?? String(value)
}
