/**
 * Building blocks of response schemas. Keywords that only describe (`format`, `maxLength`, `pattern`) are metadata, so
 * that validating a response does not repeat what the import has validated.
 */
import * as v from 'valibot'
import { COUNTRY_CODES } from '../content/iso-codes.ts'
import { MAX_CURSOR_LENGTH } from '../http/cursor.ts'
import { SLUG_PATTERN } from '../content/scalars.ts'

export type Schema<T> = v.GenericSchema<unknown, T>

/** An object that the document describes once, under its title. */
export function named<const E extends v.ObjectEntries>(title: string, description: string, members: E) {
  return v.pipe(v.strictObject(members), v.metadata({ title, description }))
}

export function described<const S extends v.GenericSchema>(
  schema: S,
  description: string,
  keywords: object = {},
) {
  return v.pipe(schema, v.metadata({ description, ...keywords }))
}

export function object<const E extends v.ObjectEntries>(description: string, members: E) {
  return v.pipe(v.strictObject(members), v.metadata({ description }))
}

export function list<T>(description: string, maxItems: number, item: Schema<T>) {
  return v.pipe(v.array(item), v.metadata({ description, maxItems }))
}

export function oneOf<const T extends readonly string[]>(
  description: string,
  names: T,
  example: T[number] | undefined = names[0],
): Schema<T[number]> {
  return v.pipe(v.picklist(names), v.metadata({ description, examples: [example] }))
}

/** @param keywords Others of JSON Schema; a pattern is anchored. */
export function text(
  description: string,
  example: string,
  maxLength: number,
  keywords: object = {},
): Schema<string> {
  return v.pipe(v.string(), v.metadata({ description, ...keywords, maxLength, examples: [example] }))
}

export function slug(description: string, example: string): Schema<string> {
  return text(description, example, 80, { pattern: SLUG_PATTERN.source })
}

/** @param pattern Validated. */
export function name(
  description: string,
  example: string,
  maxLength: number,
  pattern: RegExp,
): Schema<string> {
  const keywords = { pattern: pattern.source, maxLength, examples: [example] }
  return v.pipe(v.string(), v.description(description), v.regex(pattern), v.metadata(keywords))
}

export function country(): Schema<string> {
  return v.pipe(
    v.string(),
    v.metadata({
      title: 'CountryCode',
      description: 'ISO 3166-1 alpha-2, or `XK`.',
      examples: ['DE'],
      enum: COUNTRY_CODES,
    }),
  )
}

export function instant(description: string, example: string): Schema<string> {
  return text(description, example, 30, { format: 'date-time' })
}

export function day(description: string): Schema<string> {
  return text(description, '2026-11-01', 10, { format: 'date' })
}

const urlPattern = '^[Hh][Tt][Tt][Pp][Ss]?:\\/\\/\\S+$'

/**
 * An absolute `http` or `https` URL as imported: `format: uri` would promise that international characters are escaped
 * (RFC 3986 §2).
 */
export function url(description: string, example: string): Schema<string> {
  const keywords = { pattern: urlPattern, maxLength: 2048, examples: [example] }
  // Validated: a page that links to `javascript:` runs it.
  return v.pipe(v.string(), v.description(description), v.regex(new RegExp(urlPattern)), v.metadata(keywords))
}

/** An integer from 0. */
export function count(
  description: string,
  example: number,
  maximum = Number.MAX_SAFE_INTEGER,
): Schema<number> {
  const more = { maximum, format: 'int64', examples: [example] }
  return v.pipe(v.number(), v.integer(), v.minValue(0), v.metadata({ description, ...more }))
}

export function integer(description: string, example: number): Schema<number> {
  const range = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }
  const more = { ...range, format: 'int64', examples: [example] }
  return v.pipe(v.number(), v.integer(), v.metadata({ description, ...more }))
}

export function flag(description: string, example: boolean): Schema<boolean> {
  return v.pipe(v.boolean(), v.metadata({ description, examples: [example] }))
}

export const CURSOR_KEYWORDS = { pattern: '^[A-Za-z0-9_.-]+$', maxLength: MAX_CURSOR_LENGTH } as const

export const REQUEST_ID_PATTERN = '^req_[0-9A-Za-z]+$'
export const EXAMPLE_REQUEST_ID = 'req_0m4x2k7c9pQ1'
