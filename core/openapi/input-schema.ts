/** The schemas of parameters and members of bodies, as documents have them. */
import { COUNTRY_CODES, LOCALE_PATTERN } from '../content/iso-codes.ts'
import type { AnySchema } from '../lib/schema-structure.ts'
import { CURSOR_KEYWORDS } from '../schemas/fields.ts'
import type { Syntax } from '../schemas/input-schemas.ts'
import { convert, type JsonSchema } from '../schemas/json-schema.ts'

/**
 * Patterns that every engine compiles: ASCII, because no two engines escape other characters alike. Of those they let
 * through what the service refuses by Unicode's categories.
 */
const oneLine = '[^\\x00-\\x1f\\x7f]*'
const notBlank = `${oneLine}[^\\x00-\\x20\\x7f]${oneLine}`
/** A character that is not ASCII, or is an ASCII letter or digit. */
const searchable = '[^\\x00-/:-@\\[-`{-\\x7f]'

const secondLetters = Array.from(Map.groupBy(COUNTRY_CODES, (code) => code[0]!), ([first, codes]) => {
  const seconds = codes.map((code) => code[1]).join('')
  return `[${first}${first.toLowerCase()}][${seconds}${seconds.toLowerCase()}]`
})
const syntaxes: Readonly<Record<Syntax, JsonSchema>> = {
  line: { pattern: `^${notBlank}$` },
  'line or empty': { pattern: `^(?:${notBlank})?$` },
  search: { pattern: searchable },
  cursor: CURSOR_KEYWORDS,
  locale: { pattern: LOCALE_PATTERN, maxLength: 255 },
  country: {
    anyOf: [
      { $ref: '#/components/schemas/CountryCode' },
      { type: 'string', pattern: `^(?:${secondLetters.join('|')})$`, maxLength: 2 },
    ],
  },
}
const syntaxOf: ReadonlyMap<unknown, JsonSchema> = new Map(Object.entries(syntaxes))

/** The schema of an input, with the keywords that its form of text stands for. */
export function toJsonSchema(input: AnySchema): JsonSchema {
  return withSyntax(convert(input, 'input'))
}

function withSyntax({ syntax, items, ...schema }: JsonSchema): JsonSchema {
  const form = syntaxOf.get(syntax)
  const { type, ...keywords } = {
    ...schema,
    ...(items && { items: withSyntax(items) }),
    ...(form ?? (syntax !== undefined && { syntax })),
  }
  if (type === undefined) return keywords
  // Generators of clients apply a keyword beside `anyOf` to the union: each schema of it has its own.
  const { anyOf, ...others } = keywords
  const isNullable = Array.isArray(type) && type.includes('null')
  return anyOf === undefined
    ? { type, ...keywords }
    : { ...others, anyOf: isNullable ? [...anyOf, { type: 'null' }] : anyOf }
}
