/** The inputs of endpoints. One definition has the check of a value, its JSON Schema and its description. */
import { COUNTRY_MESSAGE, isLocale, LOCALE_MESSAGE, parseCountryCode } from '../content/iso-codes.ts'
import { containsKey } from '../http/redact.ts'
import { isObject } from '../lib/json.ts'
import { EMAIL_PATTERN, SLUG_PATTERN } from '../lib/text.ts'

/** A valibot schema. What it makes of a value is inferred from its type by Standard Schema. */
export interface EndpointSchema {
  /** Of valibot: schemas of other libraries are not described. */
  readonly kind: 'schema'
  /** Whether its check is asynchronous, which none may be. */
  readonly async: false
  /** Of Standard Schema, version 1. */
  readonly '~standard': {
    readonly vendor: 'valibot'
    readonly types?: { readonly input: unknown; readonly output: unknown } | undefined
  }
}

/** The keywords of JSON Schema that the documents use. */
export interface JsonSchema {
  readonly $ref?: string
  readonly title?: string
  readonly description?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly [keyword: string]: unknown
}

/** A schema whose `syntax` stands for keywords that are too long to load with the service. */
export interface InputSchema extends JsonSchema {
  readonly description: string
  /** That of an endpoint of the host's own, from which the keywords follow. */
  readonly source?: EndpointSchema
  readonly syntax?: 'line' | 'line or empty' | 'search' | 'country' | 'cursor' | 'locale'
}

/** Reports what is wrong with a value, or with the part of it that `path` names. */
export type Fail = (detail: string, ...path: readonly string[]) => undefined

/** A query parameter, or a member of a body. */
export interface InputDef<T> {
  /** Of one value, with its description. */
  readonly schema: InputSchema
  /** Makes what handlers get. @returns `undefined` after a failure. */
  readonly parse: (value: unknown, fail: Fail) => unknown
  readonly isRequired: boolean
  /** Makes what handlers get if it is not required, and absent or, in a body of a built-in endpoint, `null`. */
  readonly absent?: (fail: Fail) => T | undefined
  /** Checks all values of a list. */
  readonly parseList?: (values: readonly unknown[], fail: Fail) => unknown
  /** How many values a parameter may have; more than one make a list. */
  readonly maxValues: number
}

// deno-lint-ignore no-explicit-any -- each input has its own type, which a record of them cannot express
export type InputDefs = Readonly<Record<string, InputDef<any>>>

export type InputValues<D extends InputDefs> = {
  readonly [Name in keyof D]: D[Name] extends InputDef<infer T> ? T : never
}

function required<T>(schema: InputSchema, parse: (value: unknown, fail: Fail) => T | undefined): InputDef<T> {
  return { schema, parse, isRequired: true, maxValues: 1 }
}

export function optional<T, A extends T | undefined = undefined>(
  input: InputDef<T>,
  absent?: A,
): InputDef<T | A> {
  return { ...input, isRequired: false, absent: () => absent }
}

export function repeatable<T>(input: InputDef<T>): InputDef<readonly T[]> {
  return { ...input, isRequired: false, absent: () => [], maxValues: 20 }
}

/** @param parse Makes the value of a text that is valid. */
export function text<T>(
  schema: InputSchema,
  parse: (text: string, fail: Fail) => T | undefined,
): InputDef<T> {
  return required(
    { type: 'string', ...schema },
    (value, fail) => typeof value === 'string' ? parse(value, fail) : fail('must be text'),
  )
}

/** @param parse Returns `undefined` for a text that is not valid. */
export function form<T>(message: string, schema: InputSchema, parse: (text: string) => T | undefined) {
  return text(schema, (value, fail) => parse(value) ?? fail(message))
}

/** PostgreSQL cannot store NUL, UTF-8 cannot encode lone surrogates, and keys are never stored (contract, section 6). */
function isStorable(value: string): boolean {
  return !value.includes('\0') && value.isWellFormed() && !containsKey(value)
}

/** Lengths are in code points. */
export function storable(minLength: number, maxLength: number, schema: InputSchema): InputDef<string> {
  const isWithin = ({ length }: { readonly length: number }) => length <= maxLength
  return text({ minLength, maxLength, pattern: '^[^\\x00]*$', ...schema }, (value, fail) => {
    const { length } = value
    if (length < minLength || !isWithin(value) && (length > 2 * maxLength || !isWithin([...value]))) {
      return fail(`must have ${minLength}–${maxLength} characters`)
    }
    return isStorable(value)
      ? value
      : fail('must be well-formed Unicode without NUL, and must not hold a key')
  })
}

/** Text on one line that is either empty, if allowed, or visible. */
export function line(minLength: number, maxLength: number, schema: InputSchema): InputDef<string> {
  const anyText = storable(minLength, maxLength, {
    syntax: minLength > 0 ? 'line' : 'line or empty',
    ...schema,
  })
  return text(anyText.schema, (value, fail) => {
    if (anyText.parse(value, fail) === undefined) return
    if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(value)) return fail('must not hold control characters or line breaks')
    return value === '' || /[^\p{C}\p{Z}]/u.test(value) ? value : fail('must not be blank')
  })
}

export function email(schema: InputSchema): InputDef<string> {
  const maxLength = 254
  return text({ maxLength, format: 'email', pattern: EMAIL_PATTERN.source, ...schema }, (value, fail) => {
    if (value.length > maxLength) return fail(`must have at most ${maxLength} characters`)
    if (!EMAIL_PATTERN.test(value)) return fail('must be an e-mail address')
    return isStorable(value) ? value : fail('must not hold a key')
  })
}

export function slug(message: string, schema: InputSchema): InputDef<string> {
  return form(
    message,
    { pattern: SLUG_PATTERN.source, maxLength: 80, ...schema },
    (value) => SLUG_PATTERN.test(value) ? value : undefined,
  )
}

export const partner: InputDef<string> = {
  ...slug('must be a slug', { description: 'Slug of the partner that owns the key.', examples: ['demo'] }),
  // The policy has checked it.
  parse: String,
}

/** A country's code in either case. */
export function country(description: string): InputDef<string> {
  return form(COUNTRY_MESSAGE, { description, syntax: 'country', examples: ['DE'] }, parseCountryCode)
}

export function locale(description: string, example: string): InputDef<string> {
  return form(
    LOCALE_MESSAGE,
    { description, syntax: 'locale', examples: [example] },
    (value) => isLocale(value) ? value : undefined,
  )
}

export function oneOf<const T extends string>(
  message: string,
  description: string,
  words: readonly T[],
): InputDef<T> {
  return form(message, { description, enum: words }, (value) => words.find((word) => word === value))
}

export const inUse: InputDef<boolean> = optional(
  form(
    'must be true or false',
    { description: 'Return only entries with a profile.', type: 'boolean', examples: [true] },
    (value) => value === 'true' || (value === 'false' ? false : undefined),
  ),
  false,
)

/** The number of rows. */
export function limit(description: string, maximum: number, fallback: number): InputDef<number> {
  return optional(
    form(
      `must be an integer from 1 to ${maximum}`,
      { description, type: 'integer', minimum: 1, maximum, format: 'int32', examples: [20] },
      (value) => /^[1-9][0-9]{0,2}$/.test(value) && Number(value) <= maximum ? Number(value) : undefined,
    ),
    fallback,
  )
}

/** An integer in a body. */
export function integer(minimum: number, maximum: number, schema: InputSchema): InputDef<number> {
  return required(
    { type: 'integer', minimum, maximum, format: 'int32', ...schema },
    (value, fail) =>
      Number.isInteger(value) && (value as number) >= minimum && (value as number) <= maximum
        ? value as number
        : fail(`must be an integer from ${minimum} to ${maximum}`),
  )
}

/** Checked when the page is read. Without an example: a made-up cursor would not work. */
export const cursor: InputDef<string | undefined> = optional(
  text({ description: '`next_cursor` of the page before.', syntax: 'cursor' }, String),
)

const maxPairs = 20
const pairName = storable(1, 40, { description: 'Name of a field.' })
const pairValue = storable(0, 500, { description: 'Its value.' })

/** Additional members of a form. */
export const metadata: InputDef<Readonly<Record<string, string>>> = optional(
  required({
    description: 'Additional data of the form: names of 1–40, values of up to 500 characters.',
    type: 'object',
    maxProperties: maxPairs,
    propertyNames: pairName.schema,
    additionalProperties: pairValue.schema,
    examples: [{ campaign: 'spring' }],
  }, (value, fail) => {
    if (!isObject(value)) return fail('must be an object')
    const pairs = Object.entries(value)
    for (const [name, member] of pairs) {
      const validName = pairName.parse(name, (wrong) => fail(`has a name that ${wrong}`, name))
      if (validName !== undefined) pairValue.parse(member, (wrong) => fail(wrong, name))
    }
    if (pairs.length > maxPairs) return fail(`must have at most ${maxPairs} members`)
    return value as Record<string, string>
  }),
  {},
)
