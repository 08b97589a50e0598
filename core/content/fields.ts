/**
 * Fields of content: tables of valibot schemas, by which lines and rows of custom directories are read, and exports and
 * the JSON of stores written. Their order is that of an export.
 */
import * as v from 'valibot'
import { formatValue } from '../http/redact.ts'
import { isObject } from '../lib/json.ts'
import { toSnakeCase } from '../lib/text.ts'
import { rfc3339 } from '../lib/time.ts'
import { type AnySchema, entriesOf, unwrap } from '../lib/schema-structure.ts'

/** A schema that makes a value of one type. */
export type Schema<T> = v.GenericSchema<unknown, T>

/** The members of a record. In lines, their names are in snake case. */
export type Fields<R> = { readonly [Member in keyof R]-?: Schema<R[Member]> }

/** A field that may be absent or `null`, which stands for a value. */
export function withDefault<T, D>(schema: Schema<T>, absent: D): Schema<T | D> {
  return v.nullish(schema, () => absent)
}

/** A field that may be absent or `null`. */
export function optional<T>(schema: Schema<T>): Schema<T | undefined> {
  return withDefault(schema, undefined)
}

/** A field that has to be there and may be `null`. */
export function nullable<T>(schema: Schema<T>): Schema<T | undefined> {
  return v.pipe(v.nullable(schema), v.transform((value) => value ?? undefined))
}

/** An object, which a list is not for once. */
export function object<const E extends v.ObjectEntries>(entries: E) {
  return v.pipe(
    v.custom<Readonly<Record<string, unknown>>>(isObject, ({ input }) => mustBe('an object', input)),
    v.object(entries),
  )
}

/** Marks the schema of an instant, which is milliseconds since the epoch, and RFC 3339 in lines. */
export const INSTANT = v.metadata({ format: 'date-time' })

/** The reason for refusing a value, which it quotes: the end of a sentence about a field. */
export function mustBe(expected: string, value: unknown): string {
  return `must be ${expected}, not ${formatValue(value)}`
}

/** How values of a schema are walked through. Scalars that need no conversion have none. */
interface Shape {
  readonly isInstant?: true
  readonly item?: Shape | undefined
  /** The members of an object, by the names of fields in lines. */
  readonly members?: ReadonlyMap<string, Member>
}

interface Member {
  readonly name: string
  readonly shape: Shape | undefined
  /** Makes what stands for an absent value; a required member has none. */
  readonly absent: (() => unknown) | undefined
}

const shapes = new WeakMap<object, Shape>()

function shapeOf(schema: AnySchema): Shape | undefined {
  const { base } = unwrap(schema)
  const entries = entriesOf(base)
  if (entries !== undefined) return objectShape(entries)
  if (base.type === 'array' && base.item !== undefined) return { item: shapeOf(base.item) }
  return base.pipe?.includes(INSTANT) ? { isInstant: true } : undefined
}

function objectShape(entries: Readonly<Record<string, AnySchema>>): Shape {
  const known = shapes.get(entries)
  if (known !== undefined) return known
  const members = Object.entries(entries).map(([name, schema]): [string, Member] => {
    const absent = unwrap(schema).isRequired ? undefined : () => v.getDefault(schema)
    return [toSnakeCase(name), { name, shape: shapeOf(schema), absent }]
  })
  const shape = { members: new Map(members) }
  shapes.set(entries, shape)
  return shape
}

/** The place of a part: names of members and indices. */
export type Path = readonly (string | number)[]

/**
 * Makes objects with all members of a schema, under the names of the record, of those of a line.
 *
 * @param addUnknown Called with the path of each member that the schema does not name.
 */
export function fromLine(schema: AnySchema, line: object, addUnknown: (path: Path) => void): unknown {
  return select(shapeOf(schema), line, { isLine: true, path: [], addUnknown })
}

/** Makes an object with all members of a schema from a row, which has the names of the record, and may have others. */
export function fromRow(schema: AnySchema, row: unknown): unknown {
  return select(shapeOf(schema), row, { isLine: false, path: [], addUnknown: () => {} })
}

interface Selection {
  readonly isLine: boolean
  readonly path: (string | number)[]
  addUnknown(path: Path): void
}

function select(shape: Shape | undefined, value: unknown, selection: Selection): unknown {
  if (shape === undefined) return value
  const { isLine, path, addUnknown } = selection
  if (shape.item !== undefined && Array.isArray(value)) {
    return Array.from(value, (item, index) => {
      path.push(index)
      const selected = select(shape.item, item, selection)
      path.pop()
      return selected
    })
  }
  if (shape.members === undefined || !isObject(value)) return value
  if (isLine) {
    for (const name of Object.keys(value)) if (!shape.members.has(name)) addUnknown([...path, name])
  }
  const record: Record<string, unknown> = {}
  for (const [field, member] of shape.members) {
    const name = isLine ? field : member.name
    if (member.shape === undefined) {
      record[member.name] = value[name]
      continue
    }
    path.push(name)
    record[member.name] = select(member.shape, value[name], selection)
    path.pop()
  }
  return record
}

/** The path of an issue with the names of lines. */
export function linePath(issue: Pick<v.BaseIssue<unknown>, 'path'>): Path {
  return rowPath(issue).map((step) => typeof step === 'number' ? step : toSnakeCase(step))
}

/** The path of an issue with the names of the record. */
export function rowPath({ path }: Pick<v.BaseIssue<unknown>, 'path'>): Path {
  return (path ?? []).map(({ key }) => typeof key === 'number' ? key : String(key))
}

/** A path such as `links[0].url`. */
export function formatPath(path: Path): string {
  return path.reduce<string>((before, step) => {
    if (typeof step === 'number') return `${before}[${step}]`
    return before === '' ? step : `${before}.${step}`
  }, '')
}

/** A record as the object of a line, absent fields `null`. */
export function toLine<R>(fields: Fields<R>, record: R): unknown {
  return write(objectShape(fields), record)
}

function write(shape: Shape | undefined, value: unknown): unknown {
  if (value == null) return null
  if (shape === undefined) return value
  if (shape.isInstant) return rfc3339(Number(value))
  if (Array.isArray(value)) return value.map((item) => write(shape.item, item))
  const line: Record<string, unknown> = {}
  for (const [field, member] of shape.members ?? []) {
    line[field] = write(member.shape, (value as Readonly<Record<string, unknown>>)[member.name])
  }
  return line
}

/**
 * A copy of all members that fields name, in their order: equal records have equal JSON.
 *
 * @throws {TypeError} for a required member that is absent.
 */
export function pickFields<R>(fields: Fields<R>, record: NoInfer<R>): R {
  return copy(objectShape(fields), record) as R
}

function copy(shape: Shape | undefined, value: unknown): unknown {
  if (shape === undefined) return value
  if (Array.isArray(value)) return value.map((item) => copy(shape.item, item))
  if (shape.members === undefined) return value
  const copied: Record<string, unknown> = {}
  for (const { name, shape: inner, absent } of shape.members.values()) {
    const part = (value as Readonly<Record<string, unknown>>)[name]
    if (part == null && absent === undefined) throw new TypeError(`A record lacks the member ${name}.`)
    copied[name] = part == null ? absent!() : copy(inner, part)
  }
  return copied
}
