/**
 * What answers are made of: valibot schemas that carry what the OpenAPI document says of them. Keywords that only
 * describe (`format`, `maxLength`, `pattern`) stand in metadata, so that nobody's answer is judged by them twice.
 */
import { boolean, type GenericSchema, integer, metadata, minValue, number, pipe, string } from 'valibot'
import { COUNTRY_CODE_SCHEMA } from '../content/iso-codes.ts'
import { SLUG_PATTERN } from '../lib/text.ts'

/** A slug. */
export function slugSchema(description: string, example: string): GenericSchema<unknown, string> {
  const { source } = SLUG_PATTERN
  return pipe(string(), metadata({ description, pattern: source, maxLength: 80, examples: [example] }))
}

/** Text of at most `maxLength` code points: what the content import lets in. */
export function textSchema(
  description: string,
  example: string,
  maxLength: number,
): GenericSchema<unknown, string> {
  return pipe(string(), metadata({ description, maxLength, examples: [example] }))
}

/** Text of one form: the anchored expression that all of it matches. */
export function patternSchema(
  description: string,
  example: string,
  pattern: string,
  maxLength: number,
): GenericSchema<unknown, string> {
  return pipe(string(), metadata({ description, pattern, maxLength, examples: [example] }))
}

/** The code of a country. */
export function countrySchema(): GenericSchema<unknown, string> {
  return pipe(string(), metadata(COUNTRY_CODE_SCHEMA))
}

/** An instant: RFC 3339 in UTC with milliseconds. */
export function instantSchema(description: string, example: string): GenericSchema<unknown, string> {
  return pipe(string(), metadata({ description, format: 'date-time', maxLength: 30, examples: [example] }))
}

/**
 * An absolute `http` or `https` URL, as it was written: `format: uri` would promise that an international one is
 * escaped (RFC 3986 §2).
 */
export function urlSchema(description: string, example: string): GenericSchema<unknown, string> {
  return patternSchema(description, example, '^[Hh][Tt][Tt][Pp][Ss]?://\\S+$', 2048)
}

/** A whole number from 0. */
export function countSchema(
  description: string,
  example: number,
  maximum: number = Number.MAX_SAFE_INTEGER,
): GenericSchema<unknown, number> {
  return pipe(
    number(),
    integer(),
    minValue(0),
    metadata({ description, maximum, format: 'int64', examples: [example] }),
  )
}

/** What a number holds exactly. */
const exactIntegers = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }

/** A whole number. */
export function integerSchema(description: string, example: number): GenericSchema<unknown, number> {
  return pipe(
    number(),
    integer(),
    metadata({ description, ...exactIntegers, format: 'int64', examples: [example] }),
  )
}

/** `true` or `false`. */
export function booleanSchema(description: string, example: boolean): GenericSchema<unknown, boolean> {
  return pipe(boolean(), metadata({ description, examples: [example] }))
}

/** The member of a body that names the partner. That it is the key's own, the policy decides. */
export const partnerSchema: GenericSchema<unknown, string> = pipe(
  string(),
  metadata({
    description: 'Slug of the partner that the key belongs to.',
    pattern: SLUG_PATTERN.source,
    maxLength: 80,
    examples: ['demo'],
  }),
)

/** How many profiles a widget shows. */
export const WIDGET_PROFILES = 6
