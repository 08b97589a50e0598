/** The parameters and the body of an operation. */
import { COUNTRY_CODES, LOCALE_PATTERN } from '../content/iso-codes.ts'
import type { Route } from '../routes/route.ts'
import { CURSOR_KEYWORDS } from '../schemas/fields.ts'
import type { InputDef, InputSchema, JsonSchema } from '../schemas/inputs.ts'
import type { SchemaCollection } from './json-schema.ts'
import type { OperationObject, ParameterObject, Reference } from './model.ts'

/**
 * Patterns that every validator understands: no `\\p`, and characters as they are instead of `\\u`. They come close to what
 * the service checks by Unicode's categories.
 */
const oneLine = '[^\\x00-\\x1f\\x7f-\\x9f\u2028\u2029]*'
const visible = '[^\\x00-\\x20\\x7f-\\xa0\\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000' +
  '\ue000-\uf8ff\ufeff\ufff0-\ufffb]'
const line = `${oneLine}${visible}${oneLine}`
/** Letters and digits: leaves out most symbols, marks and private characters of the basic plane. */
const searchable =
  '[^\\x00-/:-@\\[-`{-\\xa9\\xab-\\xb1\\xb4\\xb6-\\xb8\\xbb\\xbf\\xd7\\xf7\u02c2-\u036f\u2000-\u2070' +
  '\u20a0-\u20ff\u2190-\u245f\u2500-\u2775\u2794-\u2bff\u2ff0-\u3004\u3008-\u3020\ue000-\uf8ff\ufe00-\ufe6f\uffe0-\uffff]'

const secondLetters = Array.from(Map.groupBy(COUNTRY_CODES, (code) => code[0]!), ([first, codes]) => {
  const seconds = codes.map((code) => code[1]).join('')
  return `[${first}${first.toLowerCase()}][${seconds}${seconds.toLowerCase()}]`
})
const SYNTAX: Readonly<Record<NonNullable<InputSchema['syntax']>, JsonSchema>> = {
  line: { pattern: `^${line}$` },
  'line or empty': { pattern: `^(?:${line})?$` },
  search: { pattern: searchable },
  cursor: CURSOR_KEYWORDS,
  locale: { pattern: LOCALE_PATTERN, maxLength: 255 },
  country: {
    maxLength: 2,
    anyOf: [
      { $ref: '#/components/schemas/CountryCode' },
      { type: 'string', pattern: `^(?:${secondLetters.join('|')})$`, maxLength: 2 },
    ],
  },
}

function toJsonSchema({ syntax, ...schema }: InputSchema): JsonSchema {
  return { ...schema, ...(syntax && SYNTAX[syntax]) }
}

/** Whether responses to GET have an entity tag. */
export function isCached(route: Route): boolean {
  return route.method === 'GET' && (route.access === 'key' || 'contentType' in route)
}

export function parametersOf(route: Route): (ParameterObject | Reference)[] {
  const shared = (name: string, applies: boolean): Reference[] =>
    applies ? [{ $ref: `#/components/parameters/${name}` }] : []
  const keyed = route.access === 'key' ? route : undefined
  return [
    ...shared('slug', route.path.includes(':slug')),
    ...shared('partner', keyed?.method === 'GET'),
    ...Object.entries(keyed?.parameters ?? {}).map(queryParameter),
    ...shared('idempotencyKey', keyed?.takesIdempotencyKey === true),
    ...shared('ifNoneMatch', isCached(route)),
    ...shared('version', true),
  ]
}

function queryParameter([name, { schema, maxValues, absent }]: [string, InputDef<unknown>]): ParameterObject {
  const { description = '', ...one } = toJsonSchema(schema)
  const example = one.examples?.[0] ?? one.enum?.[0]
  const isList = maxValues > 1
  return {
    name,
    in: 'query',
    description,
    required: false,
    ...(isList && { style: 'form', explode: true }),
    schema: isList
      ? { type: 'array', items: one, maxItems: maxValues }
      : { ...one, ...(absent !== undefined && { default: absent }) },
    ...(example !== undefined && { example: isList ? [example] : example }),
  }
}

export function requestBodyOf(route: Route, schemas: SchemaCollection): Pick<OperationObject, 'requestBody'> {
  if (route.access === 'open' || route.body === undefined) return {}
  const members = Object.entries(route.body)
  const schema: JsonSchema = {
    type: 'object',
    required: members.filter(([, { isRequired }]) => isRequired).map(([name]) => name),
    additionalProperties: false,
    properties: Object.fromEntries(members.map(([name, member]) => [name, memberSchema(member)])),
  }
  return {
    requestBody: {
      description: 'A JSON object of at most 32 KiB. Undeclared members are rejected.',
      required: true,
      content: { 'application/json': { schema, example: schemas.example(schema) } },
    },
  }
}

/** A member that is not required may also be `null`. */
function memberSchema({ schema: input, isRequired }: InputDef<unknown>): JsonSchema {
  const schema = toJsonSchema(input)
  if (isRequired) return schema
  const { type, anyOf } = schema
  return { ...schema, type: [type as string, 'null'], ...(anyOf && { anyOf: [...anyOf, { type: 'null' }] }) }
}
