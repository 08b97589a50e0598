/** valibot schemas as JSON Schema. */
import { type ConversionConfig, toJsonSchema } from '@valibot/to-json-schema'
import type { GenericSchema } from 'valibot'
import { type AnySchema, unwrap } from '../lib/schema-structure.ts'

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

/**
 * What JSON Schema cannot express, such as a check by a function, is left out; so is what `lazy` refers to.
 *
 * @param use Responses may gain members without a new version, also those that have a strict schema.
 * @throws {Error} for a schema that cannot be converted.
 */
export function convert(schema: GenericSchema, use: Use = 'response'): JsonSchema {
  // Its type has more than documents use, such as `false` in place of a schema.
  return JSON.parse(JSON.stringify(toDocument(schema, use)))
}

type Use = 'response' | 'input'

function toDocument(schema: GenericSchema, use: Use) {
  const { $schema: _schema, $defs: _defs, ...converted } = toJsonSchema(schema, {
    target: 'draft-2020-12',
    typeMode: 'input',
    errorMode: 'ignore',
    overrideSchema(context) {
      const { type } = context.valibotSchema
      if (type === 'lazy') return {}
      if (use === 'response') {
        return overrideRequired(context, use) ?? overrideNullable(context) ?? overrideOthers(context)
      }
      if (type === 'strict_object') return withoutFallbacks(context, undefined)
      return withoutFallbacks(
        context,
        overrideRequired(context, use) ?? overrideNullable(context) ?? overrideOthers(context),
      )
    },
    overrideAction: leaveOutPattern,
  })
  return converted
}

type SchemaOverride = NonNullable<ConversionConfig['overrideSchema']>

/** Writes what must not be absent or `null` as what its wrappers hold. */
function overrideRequired({ valibotSchema }: Parameters<SchemaOverride>[0], use: Use) {
  const { type, wrapped } = valibotSchema as AnySchema
  if (wrapped === undefined || !type.startsWith('non_')) return undefined
  return toDocument(type === 'non_optional' ? wrapped : unwrap(wrapped).base, use)
}

/** Members with a fallback may be absent. @param overridden What replaces the schema, if something does. */
function withoutFallbacks(
  { valibotSchema, jsonSchema }: Parameters<SchemaOverride>[0],
  overridden: ReturnType<SchemaOverride>,
): ReturnType<SchemaOverride> {
  const { entries = {} } = valibotSchema as AnySchema
  const { required = [], ...others } = overridden ?? jsonSchema
  const left = required.filter((name) => entries[name]?.fallback === undefined)
  if (left.length === required.length) return overridden
  return left.length === 0 ? others : { ...others, required: left }
}

/** Writes `null` beside one other type as one schema, unless that type is a named schema. */
const overrideNullable: SchemaOverride = ({ valibotSchema, jsonSchema }) => {
  if (valibotSchema.type !== 'nullable' && valibotSchema.type !== 'nullish') return undefined
  const [inner] = jsonSchema.anyOf ?? []
  if (typeof inner !== 'object' || inner.title !== undefined || typeof inner.type !== 'string') {
    return undefined
  }
  const nullable = { ...inner, type: [inner.type, 'null' as const] }
  return inner.enum === undefined ? nullable : { ...nullable, enum: [...inner.enum, null] }
}

const overrideOthers: SchemaOverride = ({ valibotSchema, jsonSchema }) => {
  const { const: only, ...others } = jsonSchema
  // Generators of clients take a `const` for an unknown value.
  if (only !== undefined) return { ...others, enum: [only] }
  if (valibotSchema.type === 'loose_object') return { ...jsonSchema, additionalProperties: true }
  if (valibotSchema.type !== 'strict_object') return undefined
  const { additionalProperties: _, ...open } = jsonSchema
  return open
}

/** Leaves out a pattern that other engines read otherwise, or not at all; it is checked nevertheless. */
const leaveOutPattern: NonNullable<ConversionConfig['overrideAction']> = ({ valibotAction, jsonSchema }) => {
  const { pattern, ...others } = jsonSchema
  const { requirement } = valibotAction as { readonly requirement?: unknown }
  const flags = requirement instanceof RegExp ? requirement.flags : ''
  return pattern === undefined || isPortablePattern(pattern) && /^u?$/.test(flags) ? jsonSchema : others
}

const escaped = String.raw`[\\^$.|?*+()[\]{}\/]|[fnrt]|x[0-7][\da-fA-F]`
// Python and Java read doubled marks as set operations, and no engine but ECMAScript has ranges from or to a class.
const inClass = String.raw`(?!&&|\|\||~~|--|-\\[dDwWsS])[ !-Z^-~]|\\[dDwWsS](?!-[^\]])|\\(?:${escaped}|-)`
const tokens = [
  // A raw slash would end a literal.
  String.raw`[ !"#%&',\-0-9:;<=>@A-Z_\x60a-z~.^$|)]`,
  String.raw`\\(?:${escaped}|[bBdDwWsS])`,
  String.raw`\((?:\?:|(?!\?))`,
  String.raw`\[\^?(?:${inClass})+\]`,
  String.raw`(?:[*+?]|\{\d{1,3}(?:,(?:\d{1,3})?)?\})\??`,
]
const portable = new RegExp(`^(?:${tokens.join('|')})*$`)

/**
 * Whether ECMAScript, PCRE, RE2, Python, Ruby and Java all compile a pattern: of ASCII, in what they have in common.
 */
export function isPortablePattern(pattern: string): boolean {
  if (!portable.test(pattern) || mostRepetitions(pattern) > 1000) return false
  try {
    return new RegExp(pattern, 'u') instanceof RegExp
  } catch {
    return false
  }
}

const structure = /\\.|\[(?:\\.|[^\]])*\]|[()]|\{(\d+)(?:,(\d*))?\}|./g

/** How often an element may be repeated, those of its groups counted together: RE2 refuses more than 1,000. */
function mostRepetitions(pattern: string): number {
  // The most within each open group, and of the last element.
  const open = [1]
  let last = 1
  for (const [token, from, to] of pattern.matchAll(structure)) {
    if (token === '(') open.push(1)
    else if (token === ')') last = open.pop() ?? 1
    else if (from === undefined) last = 1
    else last *= Math.max(1, Number(to || from))
    open.push(Math.max(open.pop() ?? 1, token === '(' ? 1 : last))
  }
  return open[0] ?? 1
}
