/** Formats of fields: data that lines, exports, rows of custom directories and the JSON of stores are read and written by. */
import { containsKey, formatValue } from '../http/redact.ts'
import { isObject } from '../lib/json.ts'
import { SLUG_PATTERN } from '../lib/text.ts'
import { rfc3339 } from '../lib/time.ts'

/** What a text has to be: how messages call it, and the test. */
type Form = readonly [name: string, isValid: (text: string) => boolean]

interface AnyText {
  /** Messages do not show the value. */
  readonly isSecret?: true
  /** The error in a text of the right form. */
  check?(text: string): string | undefined
}

/** Text that custom directories may also return in another form. */
interface TextFormat extends AnyText {
  readonly type: 'text'
  /** Code points, 1 at least; not checked when absent. */
  readonly max?: number
  readonly form?: Form
}

/** Text of a form that custom directories must keep as well. */
interface CodeFormat extends AnyText {
  readonly type: 'code'
  readonly form: Form
  /** What messages ask for instead of a value that is no text. Default: text in lines, else the form. */
  readonly noun?: string
  /** What it has to name, if the reader knows all of them. */
  readonly refersTo?: keyof References
}

/** An integer from `min` to `max`. */
interface IntegerFormat {
  readonly type: 'integer'
  readonly min?: number
  readonly max?: number
}

/** Milliseconds since the epoch; RFC 3339 in lines. */
interface InstantFormat {
  readonly type: 'instant'
}

interface FlagFormat {
  readonly type: 'flag'
}

interface ListFormat<T> {
  readonly type: 'list'
  readonly max?: number
  readonly item: Field<T>
  /** How messages call it. Default: a list. */
  readonly noun?: string
  /** The error in the list, or in the item at an index. */
  check?(items: readonly T[]): string | readonly [error: string, index: number] | undefined
}

export interface ObjectFormat<R> {
  readonly type: 'object'
  readonly fields: Fields<R>
  /** Two members that have an order; an absent one is no bound. */
  readonly order?: readonly [high: string, relation: 'after' | 'at least', low: string]
}

/** What a value that is absent or `null` stands for. */
interface Presence<T> {
  readonly absent: T
  /** Only `null` stands for it. */
  readonly isNullable?: true
}

type Format<T> = T extends string ? TextFormat | CodeFormat
  : T extends number ? IntegerFormat | InstantFormat
  : T extends boolean ? FlagFormat
  : T extends readonly (infer Item)[] ? ListFormat<Item>
  : ObjectFormat<T>

/** A member of type `T`. Without `absent`, it is required. */
export type Field<T> =
  & ([NonNullable<T>] extends [string] ? Format<string> : Format<NonNullable<T>>)
  & (undefined extends T ? Presence<T> : Partial<Presence<T>>)

/** The members of a record in the order of an export. In lines, their names are in snake case. */
export type Fields<R> = { readonly [Member in keyof R]-?: Field<R[Member]> }

export type ScalarFormat = TextFormat | CodeFormat | IntegerFormat | InstantFormat | FlagFormat
type AnyFormat =
  & (ScalarFormat | ListFormat<unknown> | ObjectFormat<Readonly<Record<string, unknown>>>)
  & Partial<Presence<unknown>>

/** What lines may refer to; an absent member is not checked. */
export interface References {
  /** The industries that exist, each with its parent. */
  readonly industries?: ReadonlyMap<string, string | undefined>
  /** Slugs of all partners, also of removed ones: those stay taken, and exports contain them. */
  readonly partners?: ReadonlySet<string>
}

export const SLUG = {
  type: 'code',
  noun: 'a slug',
  form: ['a slug (1–80 of a-z, 0-9 and -, a letter or digit first)', (text) => SLUG_PATTERN.test(text)],
} as const satisfies CodeFormat

/** Text of one form. */
export function code(name: string, isValid: (text: string) => boolean): CodeFormat {
  return { type: 'code', noun: name, form: [name, isValid] }
}

/** Reads values of one origin. */
export interface ValueReader {
  /** Lines have names in snake case and no unknown fields, and the limits of their formats. */
  readonly isLine: boolean
  /** @returns `undefined` after an error. */
  readScalar(format: ScalarFormat, value: unknown, path: string): unknown
  fail(path: string, reason: string): undefined
}

/** @returns The record; parts of it are `undefined` after errors. */
export function readRecord<R>(format: ObjectFormat<R>, value: unknown, reader: ValueReader): R {
  return readValue(format as unknown as AnyFormat, value, '', reader) as R
}

function readValue(format: AnyFormat, value: unknown, path: string, reader: ValueReader): unknown {
  if (value == null && 'absent' in format && !(format.isNullable && value === undefined)) return format.absent
  if (value === undefined && reader.isLine) return reader.fail(path, 'is missing')
  if (format.type === 'object') return readObject(format, value, path, reader)
  if (format.type === 'list') return readList(format, value, path, reader)
  return reader.readScalar(format, value, path)
}

function readList(format: ListFormat<unknown>, value: unknown, path: string, reader: ValueReader): unknown {
  const { item: itemFormat, max = Infinity, noun = 'a list', check } = format
  if (!Array.isArray(value)) return reader.fail(path, `must be ${noun}, not ${formatValue(value)}`)
  const items = Array.from(
    value,
    (item, index) => readValue(itemFormat as AnyFormat, item, `${path}[${index}]`, reader),
  )
  if (!reader.isLine) return items
  if (items.length > max) reader.fail(path, `must have at most ${max} items, not ${items.length}`)
  else if (!items.includes(undefined)) {
    const error = check?.(items)
    if (typeof error === 'string') reader.fail(path, error)
    else if (error !== undefined) reader.fail(`${path}[${error[1]}]`, error[0])
  }
  return items
}

function readObject(
  { fields, order }: Extract<AnyFormat, { readonly type: 'object' }>,
  value: unknown,
  path: string,
  reader: ValueReader,
): unknown {
  if (!isObject(value)) return reader.fail(path, `must be an object, not ${formatValue(value)}`)
  const members = membersOf(fields)
  const pathOf = (name: string) => path === '' ? name : `${path}.${name}`
  for (const name of reader.isLine ? Object.keys(value) : []) {
    if (!members.has(name)) reader.fail(pathOf(printableName(name)), 'is not a known field')
  }
  const record: Record<string, unknown> = {}
  for (const [field, [member, format]] of members) {
    const name = reader.isLine ? field : member
    record[member] = readValue(format, value[name], pathOf(name), reader)
  }
  if (reader.isLine && order !== undefined && isMisordered(record, order)) {
    reader.fail(pathOf(toSnakeCase(order[0])), `must be ${order[1]} ${toSnakeCase(order[2])}`)
  }
  return record
}

function isMisordered(
  record: Readonly<Record<string, unknown>>,
  [high, relation, low]: NonNullable<ObjectFormat<unknown>['order']>,
): boolean {
  const [from, to] = [record[low], record[high]]
  if (typeof from !== 'number' || typeof to !== 'number') return false
  return relation === 'after' ? to <= from : to < from
}

/** The name of an unknown field is untrusted like any value. */
function printableName(name: string): string {
  if (containsKey(name)) return '(a name in the shape of a key)'
  return /^\w{1,60}$/.test(name) ? name : formatValue(name)
}

/** A record as the object of a line, absent fields `null`. */
export function toLine<R>(format: ObjectFormat<R>, record: R): unknown {
  return convert(format as unknown as AnyFormat, record, true)
}

/**
 * A copy of all members that a format names, in its order: equal records have equal JSON.
 *
 * @throws {TypeError} for a required member that is absent.
 */
export function pickFields<R>(fields: Fields<R>, record: NoInfer<R>): R {
  return convert({ type: 'object', fields } as unknown as AnyFormat, record, false) as R
}

function convert(format: AnyFormat, value: unknown, isLine: boolean): unknown {
  if (value == null) {
    if (isLine) return null
    if ('absent' in format) return format.absent
    throw new TypeError(`A record lacks a member of type ${format.type}.`)
  }
  if (format.type === 'list') {
    return (value as readonly unknown[]).map((item) => convert(format.item as AnyFormat, item, isLine))
  }
  if (format.type !== 'object') return isLine && format.type === 'instant' ? rfc3339(Number(value)) : value
  const converted: Record<string, unknown> = {}
  for (const [field, [member, memberFormat]] of membersOf(format.fields)) {
    const memberValue = (value as Readonly<Record<string, unknown>>)[member]
    converted[isLine ? field : member] = convert(memberFormat, memberValue, isLine)
  }
  return converted
}

type Members = ReadonlyMap<string, readonly [member: string, format: AnyFormat]>

const membersByFields = new WeakMap<object, Members>()

/** The members by the names of their fields in lines. */
function membersOf(fields: object): Members {
  let members = membersByFields.get(fields)
  if (members === undefined) {
    members = new Map(
      Object.entries(fields).map(([member, format]) => [toSnakeCase(member), [member, format]]),
    )
    membersByFields.set(fields, members)
  }
  return members
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
