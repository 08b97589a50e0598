/**
 * Building blocks of response schemas. Keywords that only describe (`format`, `maxLength`, `pattern`) are metadata, so
 * that validating a response does not repeat what the import has validated.
 */
import {
  array,
  boolean,
  type GenericSchema,
  integer,
  metadata,
  minValue,
  number,
  type ObjectEntries,
  picklist,
  pipe,
  strictObject,
  string,
} from 'valibot'
import { COUNTRY_CODE_SCHEMA } from '../content/iso-codes.ts'
import { SLUG_PATTERN } from '../lib/text.ts'

/** An object that the document describes once, under its title. */
export function namedObject<const E extends ObjectEntries>(title: string, description: string, members: E) {
  return pipe(strictObject(members), metadata({ title, description }))
}

export function describedObject<const E extends ObjectEntries>(description: string, members: E) {
  return pipe(strictObject(members), metadata({ description }))
}

export function list<T>(description: string, maxItems: number, item: GenericSchema<unknown, T>) {
  return pipe(array(item), metadata({ description, maxItems }))
}

export function oneOf<const T extends readonly string[]>(
  description: string,
  names: T,
  example: T[number] | undefined = names[0],
): GenericSchema<unknown, T[number]> {
  return pipe(picklist(names), metadata({ description, examples: [example] }))
}

export function slugSchema(description: string, example: string): GenericSchema<unknown, string> {
  const { source } = SLUG_PATTERN
  return pipe(string(), metadata({ description, pattern: source, maxLength: 80, examples: [example] }))
}

export function textSchema(
  description: string,
  example: string,
  maxLength: number,
): GenericSchema<unknown, string> {
  return pipe(string(), metadata({ description, maxLength, examples: [example] }))
}

/** @param pattern Anchored. */
export function patternSchema(
  description: string,
  example: string,
  pattern: string,
  maxLength: number,
): GenericSchema<unknown, string> {
  return pipe(string(), metadata({ description, pattern, maxLength, examples: [example] }))
}

export function countrySchema(): GenericSchema<unknown, string> {
  return pipe(string(), metadata(COUNTRY_CODE_SCHEMA))
}

export function instantSchema(description: string, example: string): GenericSchema<unknown, string> {
  return pipe(string(), metadata({ description, format: 'date-time', maxLength: 30, examples: [example] }))
}

/**
 * An absolute `http` or `https` URL as imported: `format: uri` would promise that international characters are escaped
 * (RFC 3986 §2).
 */
export function urlSchema(description: string, example: string): GenericSchema<unknown, string> {
  return patternSchema(description, example, '^[Hh][Tt][Tt][Pp][Ss]?://\\S+$', 2048)
}

/** An integer from 0. */
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

export function integerSchema(description: string, example: number): GenericSchema<unknown, number> {
  return pipe(
    number(),
    integer(),
    metadata({
      description,
      minimum: Number.MIN_SAFE_INTEGER,
      maximum: Number.MAX_SAFE_INTEGER,
      format: 'int64',
      examples: [example],
    }),
  )
}

export function booleanSchema(description: string, example: boolean): GenericSchema<unknown, boolean> {
  return pipe(boolean(), metadata({ description, examples: [example] }))
}

/** The member of a body that names the partner, which the policy compares with the key's. */
export const partnerSchema: GenericSchema<unknown, string> = pipe(
  string(),
  metadata({
    description: 'Slug of the partner that owns the key.',
    pattern: SLUG_PATTERN.source,
    maxLength: 80,
    examples: ['demo'],
  }),
)

export const WIDGET_PROFILES = 6
