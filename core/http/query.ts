import { type InputError, Problem } from './problem.ts'
import { containsKey, redactKeys } from './redact.ts'

/** One query parameter of a route. */
export interface ParameterDef<T> {
  /** @returns `undefined` for an invalid value. */
  readonly parse: (text: string) => unknown
  /** What a value must be. */
  readonly message: string
  /** How many values it may have; more than one make a list. */
  readonly maxValues: number
  /** The value when the parameter is absent. */
  readonly absent: T
}

/** The query parameters of a route without `partner`, which the policy checks. */
// deno-lint-ignore no-explicit-any -- each parameter has its own type, which a record of them cannot express
export type ParameterDefs = Readonly<Record<string, ParameterDef<any>>>

export type ParameterValues<P extends ParameterDefs> = {
  readonly [Name in keyof P]: P[Name] extends ParameterDef<infer T> ? T : never
}

/** Declares a parameter with one value. */
export function single<T, A extends T | undefined>(
  parse: (text: string) => T | undefined,
  message: string,
  absent: A,
): ParameterDef<T | A> {
  return { parse, message, absent, maxValues: 1 }
}

/** Declares a parameter with up to 20 values. */
export function repeatable<T>(
  parse: (text: string) => T | undefined,
  message: string,
): ParameterDef<readonly T[]> {
  return { parse, message, absent: [], maxValues: 20 }
}

/** Parses one of several words. */
export function oneOf<const T extends string>(words: readonly T[]): (text: string) => T | undefined {
  return (text) => words.find((word) => word === text)
}

/**
 * Reads the parameters that a route declares, and only those.
 *
 * @param otherErrors Errors of parameters outside the query, reported together.
 * @param check Returns what is wrong with the values together; an invalid one counts as absent.
 * @throws {Problem} `invalid_parameter` with every failure: unknown, repeated, malformed or out of range.
 */
export function readParameters<P extends ParameterDefs>(
  query: Query,
  declared: P,
  partnerLocation: 'query' | 'body' | undefined,
  otherErrors: readonly InputError[] = [],
  check: (values: ParameterValues<P>) => readonly InputError[] = () => [],
): ParameterValues<P> {
  const errors: InputError[] = [...otherErrors]
  const input: Record<string, unknown> = {}
  for (const name of query.values.keys()) {
    if (!Object.hasOwn(declared, name) && !(name === 'partner' && partnerLocation === 'query')) {
      errors.push({ parameter: redactKeys(name), detail: 'is not a parameter of this endpoint' })
    }
  }
  for (const [name, { maxValues, parse, message, absent }] of Object.entries(declared)) {
    const texts = query.values.get(name)
    if (texts === undefined) {
      input[name] = absent
      continue
    }
    const error = valueError(query, name, texts, maxValues)
    if (error !== undefined) errors.push({ parameter: name, detail: error })
    else {
      const values: unknown[] = []
      for (const text of texts) {
        const value = parse(text)
        if (value === undefined) errors.push({ parameter: name, detail: message })
        else values.push(value)
      }
      input[name] = maxValues > 1 ? values : values[0]
    }
  }
  errors.push(...check(input as ParameterValues<P>))
  if (errors.length > 0) throw new Problem('invalid_parameter', { errors })
  return input as ParameterValues<P>
}

/**
 * The partner that a query names.
 *
 * @throws {Problem} `invalid_parameter` if it is repeated, malformed or looks like a key.
 */
export function readPartner(query: Query): string | undefined {
  const texts = query.values.get('partner')
  const detail = texts && valueError(query, 'partner', texts, 1)
  if (detail === undefined) return texts?.[0]
  throw new Problem('invalid_parameter', { errors: [{ parameter: 'partner', detail }] })
}

export const KEY_IN_URL = 'looks like a key, which must not be sent in a URL'

function valueError(query: Query, name: string, texts: readonly string[], most: number): string | undefined {
  if (query.malformed.has(name)) return 'is not percent-encoded UTF-8'
  if (texts.length > most) {
    return most === 1 ? 'must not be repeated' : `must not have more than ${most} values`
  }
  return texts.some(containsKey) ? KEY_IN_URL : undefined
}

/** A parsed query string: each name with its values in order. */
export interface Query {
  readonly values: ReadonlyMap<string, readonly string[]>
  /** Names with a value that is not percent-encoded UTF-8. */
  readonly malformed: ReadonlySet<string>
}

/**
 * Parses `application/x-www-form-urlencoded` text: `+` is a space, and empty pieces are ignored (URL living standard
 * §5.1), but malformed percent-encoding is reported.
 */
export function readQuery(text: string): Query {
  const values = new Map<string, string[]>()
  const malformed = new Set<string>()
  for (const piece of text.split('&')) {
    if (piece === '') continue
    const separator = piece.indexOf('=')
    const rawName = separator < 0 ? piece : piece.slice(0, separator)
    const name = decode(rawName) ?? rawName
    const value = separator < 0 ? '' : decode(piece.slice(separator + 1))
    if (value === undefined) malformed.add(name)
    const known = values.get(name)
    if (known === undefined) values.set(name, [value ?? ''])
    else known.push(value ?? '')
  }
  return { values, malformed }
}

/** Whether every escape is part of percent-encoded UTF-8 (RFC 3986 §2.1). */
export function isPercentEncoded(text: string): boolean {
  return decodePercent(text) !== undefined
}

function decode(text: string): string | undefined {
  return decodePercent(text.includes('+') ? text.replaceAll('+', ' ') : text)
}

function decodePercent(text: string): string | undefined {
  if (!text.includes('%')) return text
  // `decodeURIComponent` would throw, and a query can have two thousand malformed pieces: 10 µs for each error.
  return text.replace(percentEncoded, '').includes('%') ? undefined : decodeURIComponent(text)
}

/** A character as percent-encoded UTF-8 (RFC 3629 §4). */
const percentEncoded = new RegExp(
  [
    '%[0-7]X',
    '%(?:C[2-9A-F]|DX)T',
    '%(?:E0%[AB]X|E[1-9ABCEF]T|ED%[89]X)T',
    '%(?:F0%[9AB]XT|F[1-3]TT|F4%8XT)T',
  ].join('|').replaceAll('T', '%[89AB]X').replaceAll('X', '[0-9A-F]'),
  'gi',
)
