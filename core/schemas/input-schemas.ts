/**
 * The inputs of endpoints, parameters of a query and members of a body, as valibot schemas: each has the check of a
 * value with the sentence of its error, what handlers get, and as metadata the keywords and the text of the documents.
 */
import * as v from 'valibot'
import { COUNTRY_MESSAGE, isLocale, LOCALE_MESSAGE, parseCountryCode } from '../content/iso-codes.ts'
import { containsKey } from '../http/redact.ts'
import { isObject } from '../lib/json.ts'
import { EMAIL_PATTERN, SLUG_PATTERN } from '../content/scalars.ts'
import { rule } from '../lib/schema-rules.ts'
import type { JsonSchema } from './json-schema.ts'

/** A valibot schema. What it makes of a value is inferred from its type by Standard Schema. */
export interface EndpointSchema {
  /** The mark of a valibot schema: schemas of other libraries are not described. */
  readonly kind: 'schema'
  /** Whether its check is asynchronous, which none may be. */
  readonly async: false
  /** The interface of Standard Schema, version 1. */
  readonly '~standard': {
    readonly vendor: 'valibot'
    readonly types?: { readonly input: unknown; readonly output: unknown } | undefined
  }
}

/** Schemas by the names of parameters or members. */
export type InputSchemas = Readonly<Record<string, v.GenericSchema>>

/** What handlers get: the values that schemas make of a request. */
export type InputValues<S extends InputSchemas> = { readonly [Name in keyof S]: v.InferOutput<S[Name]> }

/** Keywords of JSON Schema with the text about an input. */
export interface InputKeywords extends JsonSchema {
  /** Stands for keywords that are too long to load with the service. */
  readonly syntax?: Syntax
}

/** A form of text whose keywords the documents have. */
export type Syntax = 'line' | 'line or empty' | 'search' | 'country' | 'cursor' | 'locale'

const anyText = v.string('must be text')

/** An input that may be absent or, in a body, `null`; handlers then get `undefined`. */
export function optional<Output>(schema: v.GenericSchema<unknown, Output>) {
  return v.nullish(schema, () => undefined)
}

/** Text of one form. @param parse Makes what handlers get; `undefined` of a text in another form. */
export function form<T>(message: string, keywords: InputKeywords, parse: (text: string) => T | undefined) {
  return v.pipe(
    anyText,
    v.metadata(keywords),
    v.rawTransform<string, T>(({ dataset, addIssue, NEVER }) => {
      const value = parse(dataset.value)
      if (value !== undefined) return value
      addIssue({ message })
      return NEVER
    }),
  )
}

/**
 * PostgreSQL cannot store NUL, UTF-8 cannot encode lone surrogates, and keys are never stored (contract, section 6).
 */
function isStorable(value: string): boolean {
  return !value.includes('\0') && value.isWellFormed() && !containsKey(value)
}

/** What is wrong with a text to be stored. Lengths are in code points. */
function storableError(value: string, minLength: number, maxLength: number): string | undefined {
  // A code point has at most two UTF-16 units: longer text need not be counted.
  const isTooLong = value.length > maxLength &&
    (value.length > 2 * maxLength || [...value].length > maxLength)
  if (isTooLong || value.length < minLength) return `must have ${minLength}–${maxLength} characters`
  return isStorable(value) ? undefined : 'must be well-formed Unicode without NUL, and must not hold a key'
}

const anyStorable = '^[^\\x00]*$'

/** Text to be stored. Lengths are in code points. */
export function storable(minLength: number, maxLength: number, keywords: InputKeywords) {
  return v.pipe(
    anyText,
    v.metadata({ minLength, maxLength, pattern: anyStorable, ...keywords }),
    rule((value) => storableError(value, minLength, maxLength)),
  )
}

/** Text on one line that is either empty, if allowed, or visible. */
export function line(minLength: number, maxLength: number, keywords: InputKeywords) {
  return v.pipe(
    anyText,
    v.metadata({ minLength, maxLength, syntax: minLength > 0 ? 'line' : 'line or empty', ...keywords }),
    rule((value) => {
      const error = storableError(value, minLength, maxLength)
      if (error !== undefined) return error
      if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(value)) return 'must not hold control characters or line breaks'
      return value === '' || /[^\p{C}\p{Z}]/u.test(value) ? undefined : 'must not be blank'
    }),
  )
}

/** An e-mail address. */
export function email(keywords: InputKeywords) {
  const maxLength = 254
  return v.pipe(
    anyText,
    v.metadata({ maxLength, format: 'email', pattern: EMAIL_PATTERN.source, ...keywords }),
    rule((value) => {
      if (value.length > maxLength) return `must have at most ${maxLength} characters`
      if (!EMAIL_PATTERN.test(value)) return 'must be an e-mail address'
      return isStorable(value) ? undefined : 'must not hold a key'
    }),
  )
}

const slugKeywords = { pattern: SLUG_PATTERN.source, maxLength: 80 }

/** A slug. @param message What is wrong with any other text. */
export function slug(message: string, keywords: InputKeywords) {
  return v.pipe(
    anyText,
    v.metadata({ ...slugKeywords, ...keywords }),
    rule((value) => SLUG_PATTERN.test(value) ? undefined : message),
  )
}

/** The partner of a body, which the policy has checked. */
export const partner = v.pipe(
  anyText,
  v.metadata({
    ...slugKeywords,
    description: 'Slug of the partner that owns the key.',
    examples: ['demo'],
  }),
)

/** A country's code in either case. */
export function country(keywords: InputKeywords) {
  return form(COUNTRY_MESSAGE, { syntax: 'country', examples: ['DE'], ...keywords }, parseCountryCode)
}

/** A language tag. */
export function locale(description: string, example: string) {
  return v.pipe(
    anyText,
    v.metadata({ description, syntax: 'locale', examples: [example] }),
    rule((value) => isLocale(value) ? undefined : LOCALE_MESSAGE),
  )
}

/** Values of a parameter that may be repeated; none make an empty list. */
export function repeatable<T>(description: string, schema: v.GenericSchema<unknown, T>) {
  return v.pipe(v.array(schema), v.metadata({ description, maxItems: MAX_VALUES }))
}

/** How many values a parameter may have. */
export const MAX_VALUES = 20

/** Whether to leave out entries without a profile. */
export const inUse = v.optional(
  v.pipe(
    v.boolean('must be true or false'),
    v.metadata({ description: 'Return only entries with a profile.', examples: [true] }),
  ),
  false,
)

/** The number of rows. */
export function limit(description: string, maximum: number, fallback: number) {
  const digits = form(
    `must be an integer from 1 to ${maximum}`,
    {
      description,
      type: 'integer',
      minimum: 1,
      maximum,
      format: 'int32',
      examples: [20],
      default: fallback,
    },
    (text) => /^[1-9][0-9]{0,2}$/.test(text) && Number(text) <= maximum ? Number(text) : undefined,
  )
  return v.pipe(v.optional(digits), v.transform((value) => value ?? fallback))
}

/** An integer in a body. */
export function integer(minimum: number, maximum: number, keywords: InputKeywords) {
  const message = `must be an integer from ${minimum} to ${maximum}`
  return v.pipe(
    v.number(message),
    v.metadata({ type: 'integer', minimum, maximum, format: 'int32', ...keywords }),
    rule((value) => Number.isInteger(value) && value >= minimum && value <= maximum ? undefined : message),
  )
}

/** Checked when the page is read. Without an example: a made-up cursor would not work. */
export const cursor = v.optional(
  v.pipe(anyText, v.metadata({ description: '`next_cursor` of the page before.', syntax: 'cursor' })),
)

const maxPairs = 20
const maxName = 40
const maxValue = 500

/** What is wrong with additional data; names and values with their path. */
function* pairErrors(pairs: object): Generator<readonly [detail: string, name?: string]> {
  const members = Object.entries(pairs)
  for (const [name, value] of members) {
    const nameError = storableError(name, 1, maxName)
    const valueError = typeof value === 'string' ? storableError(value, 0, maxValue) : 'must be text'
    if (nameError !== undefined) yield [`has a name that ${nameError}`, name]
    else if (valueError !== undefined) yield [valueError, name]
  }
  if (members.length > maxPairs) yield [`must have at most ${maxPairs} members`]
}

/**
 * Additional members of a form. A schema of its own, because `record` of valibot leaves out `constructor` and the like.
 */
export const metadata = v.pipe(
  v.nullish(v.pipe(
    v.custom<Readonly<Record<string, string>>>(isObject, 'must be an object'),
    v.metadata({
      description: 'Additional data of the form: names of 1–40, values of up to 500 characters.',
      type: 'object',
      maxProperties: maxPairs,
      propertyNames: {
        type: 'string',
        minLength: 1,
        maxLength: maxName,
        pattern: anyStorable,
        description: 'Name of a field.',
      },
      additionalProperties: {
        type: 'string',
        minLength: 0,
        maxLength: maxValue,
        pattern: anyStorable,
        description: 'Its value.',
      },
      examples: [{ campaign: 'spring' }],
    }),
    v.rawCheck(({ dataset, addIssue }) => {
      if (!dataset.typed) return
      const input = dataset.value
      for (const [message, key] of pairErrors(input)) {
        if (key === undefined) addIssue({ message })
        else addIssue({ message, path: [{ type: 'object', origin: 'value', input, key, value: input[key] }] })
      }
    }),
  )),
  v.transform((value) => value ?? {}),
)
