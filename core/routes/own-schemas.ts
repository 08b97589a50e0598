/** The valibot schemas of own endpoints: which can be used. */
import { type AnySchema, unwrap } from '../lib/schema-structure.ts'

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

const UNSENDABLE: Readonly<Record<UnsendableType, true>> = {
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

/** Why no request can have a value for a schema. */
export function findUnsendable(schema: AnySchema): string | undefined {
  const type = unsendableType(schema)
  return type === undefined ? undefined : `its schema takes a ${type}, which no request can send`
}

/** The type of a schema, or of one for the items or members within, that no request can meet. */
function unsendableType(schema: AnySchema): string | undefined {
  const { base } = unwrap(schema)
  if (Object.hasOwn(UNSENDABLE, base.type)) return base.type
  if (base.type === 'array' && base.item !== undefined) return unsendableType(base.item)
  const types = Object.values(base.entries ?? {}).map(unsendableType)
  // A member that must be absent is one that objects may have.
  return types.find((type) => type !== undefined && type !== 'never')
}

/** Whether a value is a schema of valibot. Those of other libraries have no such method. */
export function isSchema(value: unknown): value is AnySchema {
  return typeof value === 'object' && value !== null && '~run' in value
}

/** Why a value can be neither checked nor described. */
export function findSchemaMisuse(schema: unknown): string | undefined {
  if (!isSchema(schema)) return 'its schema is not one of valibot'
  try {
    return isAsync(schema, new Set()) ? 'its schema is asynchronous' : undefined
  } catch (error) {
    return `its schema cannot be described: ${error instanceof Error ? error.message.split('\n')[0] : ''}`
  }
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
