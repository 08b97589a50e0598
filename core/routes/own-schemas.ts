/** The valibot schemas of own endpoints: which can be used. */
import { type AnySchema, typeOf } from '../lib/schema-structure.ts'

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
  const type = typeOf(schema)
  return Object.hasOwn(UNSENDABLE, type) ? `its schema takes a ${type}, which no request can send` : undefined
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
 * @throws {Error} for a part that the documents, which are JSON, cannot have, such as an example that refers to itself:
 * they would have to be made to find that out otherwise, with code that no service needs at its start.
 */
function isAsync(part: unknown, seen: Set<unknown>): boolean {
  if (typeof part !== 'object' || part === null || seen.has(part)) return false
  seen.add(part)
  const { kind, type, async, default: absent, requirement, getter }: Part = part
  if (async === true) return true
  if (kind === 'metadata') {
    JSON.stringify(part)
    return false
  }
  if (type === 'multiple_of') JSON.stringify(requirement)
  if (kind === 'schema') JSON.stringify(typeof absent === 'function' ? absent() : absent)
  const made: unknown = type === 'lazy' && typeof getter === 'function' ? getter() : undefined
  return [made, ...Object.values(part)].some((inner) => isAsync(inner, seen))
}
