/** The valibot schemas of the host's endpoints: which can be used. */
import { formatValue } from '../http/redact.ts'
import { type AnySchema, partsOf } from '../lib/schema-structure.ts'

/** A type of schemas that take what neither a query nor JSON can carry. */
export type UnsendableType =
  | 'bigint'
  | 'blob'
  | 'date'
  | 'file'
  | 'function'
  | 'instance'
  | 'map'
  | 'nan'
  | 'never'
  | 'promise'
  | 'set'
  | 'symbol'

const unsendable: Readonly<Record<UnsendableType, true>> = {
  bigint: true,
  blob: true,
  date: true,
  file: true,
  function: true,
  instance: true,
  map: true,
  nan: true,
  never: true,
  promise: true,
  set: true,
  symbol: true,
}

/** Why no request can have a value for a schema, or for a part of it. */
export function findUnsendable(schema: AnySchema): string | undefined {
  const type = unsendableType(schema, false, new Set())
  return type === undefined ? undefined : `its schema takes a ${type}, which no request can send`
}

/** @param isMember Whether it is one of several parts: one that must be absent is a part that a value may have. */
function unsendableType(schema: AnySchema, isMember: boolean, seen: Set<unknown>): string | undefined {
  if (seen.has(schema)) return undefined
  seen.add(schema)
  const { type } = schema
  if (Object.hasOwn(unsendable, type)) return type === 'never' && isMember ? undefined : type
  const parts = partsOf(schema)
  // What `optional` and the like wrap, and the items of a list, are all that there is.
  const isOneOf = type !== 'array' && !('wrapped' in schema)
  for (const [, part] of parts) {
    const found = isSchema(part) && unsendableType(part, isOneOf || isMember, seen)
    if (found) return found
  }
  return undefined
}

/** Whether a value is a schema of valibot. Those of other libraries have no such method. */
export function isSchema(value: unknown): value is AnySchema {
  return typeof value === 'object' && value !== null && '~run' in value && 'kind' in value &&
    value.kind === 'schema'
}

/** Why a value can be neither checked nor described. */
export function findSchemaMisuse(schema: unknown): string | undefined {
  if (!isSchema(schema)) {
    return `it must be a schema of valibot, such as v.string() or v.object({ … }), not ${formatValue(schema)}`
  }
  try {
    return findBrokenPart(schema, new Set()) ??
      (isAsync(schema, new Set()) ? 'its schema is asynchronous' : undefined)
  } catch (error) {
    return `its schema cannot be described: ${error instanceof Error ? error.message.split('\n')[0] : ''}`
  }
}

/** Describes a part of a schema that is not a schema but must be: it would fail with the first request. */
function findBrokenPart(schema: AnySchema, seen: Set<unknown>): string | undefined {
  if (seen.has(schema)) return undefined
  seen.add(schema)
  for (const [name, part] of partsOf(schema)) {
    const broken = isSchema(part)
      ? findBrokenPart(part, seen)
      : `the ${name} of its ${schema.type} must be of schemas of valibot, not ${formatValue(part)}`
    if (broken !== undefined) return broken
  }
  return undefined
}

/** What the walk through a schema looks at. */
interface Part {
  readonly kind?: unknown
  readonly type?: unknown
  readonly async?: unknown
  /** The value of an input that is absent, or makes it. */
  readonly default?: unknown
  readonly requirement?: unknown
  /** Makes the schema of `lazy`. */
  readonly getter?: unknown
}

/**
 * Whether a schema, or a part of it, is asynchronous.
 *
 * @throws {Error} for what the documents cannot have: to find that out by making them would load code with the service
 * that only they need.
 */
function isAsync(part: unknown, seen: Set<unknown>): boolean {
  if (typeof part !== 'object' || part === null || seen.has(part)) return false
  seen.add(part)
  const { kind, type, async, getter }: Part = part
  if (async === true) return true
  // Documents are JSON. Throws for a bigint, and for an example that refers to itself.
  JSON.stringify(describedBy(part))
  if (kind === 'metadata') return false
  const made: unknown = type === 'lazy' && typeof getter === 'function' ? getter() : undefined
  return [made, ...Object.values(part)].some((inner) => isAsync(inner, seen))
}

/** The values that the documents show of a part of a schema. */
function describedBy(part: Part): unknown {
  if (part.kind === 'metadata') return part
  if (part.type === 'multiple_of') return part.requirement
  const isMade = part.kind === 'schema' && typeof part.default === 'function'
  return isMade ? part.default() : part.default
}
