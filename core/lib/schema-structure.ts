/** What valibot schemas show of themselves: their types, and the schemas that they are made of. */
import type { GenericSchema } from 'valibot'

/** Any schema, with the parts that some types of schemas have. */
export type AnySchema = GenericSchema & {
  /** The schema within `optional`, `nullable` and the like. */
  readonly wrapped?: AnySchema
  /** The schema of the items of a list. */
  readonly item?: AnySchema
  /** The members of an object, in their order. */
  readonly entries?: Readonly<Record<string, AnySchema>>
  /** The schema of the values of a record. */
  readonly value?: AnySchema
  /** The alternatives of a union. */
  readonly options?: readonly AnySchema[]
  /** What `fallback` puts in place of an invalid value. */
  readonly fallback?: unknown
  /** The schemas and actions of a pipe, of which the first is the schema itself. */
  readonly pipe?: readonly unknown[]
}

/** The members of an object, in their order; `undefined` for any other schema. */
export function entriesOf({ entries, pipe = [] }: Pick<AnySchema, 'entries' | 'pipe'>): AnySchema['entries'] {
  if (entries !== undefined) return entries
  for (const part of pipe as readonly Pick<AnySchema, 'entries' | 'pipe'>[]) {
    const found = entriesOf(part)
    if (found !== undefined) return found
  }
  return undefined
}

/** A part of a schema, with what it is called there. It is a schema, too, unless the host made a mistake. */
export type SchemaPart = readonly [name: string, part: unknown]

/** The schemas of which a schema is made, except those in its pipe. */
export function partsOf(schema: AnySchema): readonly SchemaPart[] {
  const { type, wrapped, item, entries, key, value, items, rest, options, getter } = schema as Parts
  const named = (name: string, parts: unknown): SchemaPart[] =>
    Array.isArray(parts) ? parts.map((part, index) => [`${name} ${index}`, part]) : [[`${name}s`, parts]]
  if ('wrapped' in schema) return [['value', wrapped]]
  if (type === 'array' || type === 'set') return [['item', type === 'set' ? value : item]]
  if (type === 'record' || type === 'map') return [['key', key], ['value', value]]
  if (type === 'lazy') {
    return typeof getter === 'function' ? [['value', getter(undefined)]] : [['getter', getter]]
  }
  if (type === 'union' || type === 'variant' || type === 'intersect') return named('option', options)
  const own: SchemaPart[] = []
  if ('items' in schema) own.push(...named('item', items))
  if ('entries' in schema) {
    if (typeof entries !== 'object' || entries === null) return [['entries', entries]]
    for (const [name, part] of Object.entries(entries)) own.push([`member ${name}`, part])
  }
  if ('rest' in schema) own.push(['rest', rest])
  return own
}

/** The members of schemas that have schemas in them. */
interface Parts {
  readonly type: string
  readonly wrapped?: unknown
  readonly item?: unknown
  readonly entries?: unknown
  readonly key?: unknown
  readonly value?: unknown
  readonly items?: unknown
  readonly rest?: unknown
  readonly options?: unknown
  readonly getter?: unknown
}

/** What a schema checks when there is a value, and whether there has to be one: the outermost wrapper decides. */
export function unwrap(schema: AnySchema): { readonly base: AnySchema; readonly isRequired: boolean } {
  let base = schema
  let isRequired: boolean | undefined
  for (;; base = base.wrapped) {
    if ('fallback' in base) isRequired ??= false
    if (base.wrapped === undefined) break
    if (/^non_(?:optional|nullish)$/.test(base.type)) isRequired ??= true
    else if (/^(?:(?:exact_)?optional|nullish|undefinedable)$/.test(base.type)) isRequired ??= false
  }
  return { base, isRequired: isRequired ?? true }
}
