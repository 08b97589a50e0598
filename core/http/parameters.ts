import { type GenericSchema, safeParse } from 'valibot'
import { holdsKey } from '../keys/format.ts'
import { type InputError, Problem } from './problem.ts'
import type { Query } from './query.ts'
import { sayable } from './redact.ts'

/** How often a parameter that repeats may stand in a query. */
export const maxRepetitions = 20

/** What a route says of one query parameter. */
export interface Parameter<T> {
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
export type Parameters = Readonly<Record<string, Parameter<any>>>

/** What a handler gets for its declared parameters. */
export type ParameterValues<P extends Parameters> = {
  readonly [Name in keyof P]: P[Name] extends Parameter<infer T> ? T : never
}

/** Declares a single parameter. */
export function single<T, A extends T | undefined>(
  form: Parameter<T>['form'],
  schema: GenericSchema<string | number | boolean, T>,
  absent: A,
  description: string,
): Parameter<T | A> {
  return { form, schema, absent, description, repeatable: false }
}

/** Declares a parameter that may stand up to 20 times. */
export function repeatable<T>(
  schema: GenericSchema<string | number | boolean, T>,
  description: string,
): Parameter<readonly T[]> {
  return { form: 'text', schema, absent: [], description, repeatable: true }
}

/**
 * Reads the parameters that a route declares, and only those.
 *
 * @param others What is wrong with parameters that are no part of the query.
 * @throws {Problem} `invalid_parameter` with every failure: unknown, repeated, malformed or out of range.
 */
export function readParameters<P extends Parameters>(
  query: Query,
  declared: P,
  partnerIn: 'query' | 'body' | undefined,
  others: readonly InputError[] = [],
): ParameterValues<P> {
  const errors: InputError[] = [...others]
  const input: Record<string, unknown> = {}
  for (const name of query.values.keys()) {
    if (!Object.hasOwn(declared, name) && !(name === 'partner' && partnerIn === 'query')) {
      errors.push({ parameter: sayable(name), detail: 'is not a parameter of this endpoint' })
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
    else if (texts.some(holdsKey)) fail('has the shape of a key, which never belongs into a URL')
    else {
      const values: unknown[] = []
      for (const text of texts) {
        const result = safeParse(parameter.schema, understand(text, parameter.form))
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
    : texts.some(holdsKey)
    ? 'has the shape of a key, which never belongs into a URL'
    : undefined
  if (detail !== undefined) {
    throw new Problem('invalid_parameter', { errors: [{ parameter: 'partner', detail }] })
  }
  return texts[0]
}

/** Text that is no integer or boolean stays text, for the schema to refuse. */
function understand(text: string, form: Parameter<unknown>['form']): string | number | boolean {
  if (form === 'integer' && /^-?(?:0|[1-9][0-9]{0,14})$/.test(text)) return Number(text)
  if (form === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}
