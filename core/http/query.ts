import { type GenericSchema, safeParse } from 'valibot'
import { type InputError, Problem } from './problem.ts'
import { containsKey, redactKeys } from './redact.ts'

/** How often a parameter that repeats may stand in a query. */
export const maxRepetitions = 20

/** What a route says of one query parameter. */
export interface ParameterDef<T> {
  readonly description: string
  /** How the text of a value is understood before the schema judges it. */
  readonly form: 'text' | 'integer' | 'boolean'
  /** Judges one value. */
  readonly schema: GenericSchema<string | number | boolean, unknown>
  readonly repeatable: boolean
  /** What the handler gets when the parameter is absent. */
  readonly absent: T
}

/** The query parameters of a route, `partner` left out: that one is the policy's. */
// deno-lint-ignore no-explicit-any -- each parameter has a type of its own, and a record of them can't name it
export type ParameterDefs = Readonly<Record<string, ParameterDef<any>>>

/** What a handler gets for its declared parameters. */
export type ParameterValues<P extends ParameterDefs> = {
  readonly [Name in keyof P]: P[Name] extends ParameterDef<infer T> ? T : never
}

/** Declares a single parameter. */
export function single<T, A extends T | undefined>(
  form: ParameterDef<T>['form'],
  schema: GenericSchema<string | number | boolean, T>,
  absent: A,
  description: string,
): ParameterDef<T | A> {
  return { form, schema, absent, description, repeatable: false }
}

/** Declares a parameter that may stand up to 20 times. */
export function repeatable<T>(
  schema: GenericSchema<string | number | boolean, T>,
  description: string,
): ParameterDef<readonly T[]> {
  return { form: 'text', schema, absent: [], description, repeatable: true }
}

/**
 * Reads the parameters that a route declares, and only those.
 *
 * @param otherErrors What is wrong with parameters that are no part of the query.
 * @throws {Problem} `invalid_parameter` with every failure: unknown, repeated, malformed or out of range.
 */
export function readParameters<P extends ParameterDefs>(
  query: Query,
  declared: P,
  partnerLocation: 'query' | 'body' | undefined,
  otherErrors: readonly InputError[] = [],
): ParameterValues<P> {
  const errors: InputError[] = [...otherErrors]
  const input: Record<string, unknown> = {}
  for (const name of query.values.keys()) {
    if (!Object.hasOwn(declared, name) && !(name === 'partner' && partnerLocation === 'query')) {
      errors.push({ parameter: redactKeys(name), detail: 'is not a parameter of this endpoint' })
    }
  }
  for (const [name, parameter] of Object.entries(declared)) {
    const texts = query.values.get(name)
    if (texts === undefined) {
      input[name] = parameter.absent
      continue
    }
    const fail = (detail: string): void => void errors.push({ parameter: name, detail })
    if (query.malformed.has(name)) fail('is not percent-encoded UTF-8')
    else if (!parameter.repeatable && texts.length > 1) fail('must not be repeated')
    else if (texts.length > maxRepetitions) fail(`must not stand more than ${maxRepetitions} times`)
    else if (texts.some(containsKey)) fail('has the shape of a key, which never belongs into a URL')
    else {
      const values: unknown[] = []
      for (const text of texts) {
        const result = safeParse(parameter.schema, coerce(text, parameter.form))
        if (result.success) values.push(result.output)
        else fail(result.issues[0].message)
      }
      input[name] = parameter.repeatable ? values : values[0]
    }
  }
  if (errors.length > 0) throw new Problem('invalid_parameter', { errors })
  return input as ParameterValues<P>
}

/**
 * The partner that a query names.
 *
 * @returns undefined when it names none.
 * @throws {Problem} `invalid_parameter` when it is repeated, malformed or in the shape of a key.
 */
export function readPartner(query: Query): string | undefined {
  const texts = query.values.get('partner')
  if (texts === undefined) return undefined
  const detail = query.malformed.has('partner')
    ? 'is not percent-encoded UTF-8'
    : texts.length > 1
    ? 'must not be repeated'
    : texts.some(containsKey)
    ? 'has the shape of a key, which never belongs into a URL'
    : undefined
  if (detail !== undefined) {
    throw new Problem('invalid_parameter', { errors: [{ parameter: 'partner', detail }] })
  }
  return texts[0]
}

/** Text that is no integer or boolean stays text, for the schema to refuse. */
function coerce(text: string, form: ParameterDef<unknown>['form']): string | number | boolean {
  if (form === 'integer' && /^-?(?:0|[1-9][0-9]{0,14})$/.test(text)) return Number(text)
  if (form === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

/** A query string taken apart: each name with its values in order. */
export interface Query {
  readonly values: ReadonlyMap<string, readonly string[]>
  /** Names with a value that is not percent-encoded UTF-8. */
  readonly malformed: ReadonlySet<string>
}

/**
 * Reads `application/x-www-form-urlencoded` text: `+` is a space, and empty pieces are passed over
 * (URL living standard §5.1), but malformed percent-encoding is told, not kept.
 */
export function readQuery(text: string): Query {
  const values = new Map<string, string[]>()
  const malformed = new Set<string>()
  for (const piece of text === '' ? [] : text.split('&')) {
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

/** Whether every escape of a text is part of percent-encoded UTF-8 (RFC 3986 §2.1). */
export function isPercentEncoded(text: string): boolean {
  return decodePercent(text) !== undefined
}

function decode(text: string): string | undefined {
  return decodePercent(text.includes('+') ? text.replaceAll('+', ' ') : text)
}

function decodePercent(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
