/** Formats of fields: data that lines, exports, rows of custom directories and the JSON of stores are read and written by. */
import { formatValue } from '../http/redact.ts'
import { isObject } from '../lib/json.ts'
import { rfc3339 } from '../lib/time.ts'

/** What is wrong with a value, or with its item or field `at`. */
export type ValueError = string | readonly [error: string, at: string | number]

interface Checked<T> {
  /** The error of a value in a line. Its invalid items and members, which are reported already, are `undefined`. */
  check?(value: T): ValueError | undefined
}

/** How messages call a form, and its test. */
export type Form = readonly [name: string, isValid: (text: string) => boolean]

interface TextFormat extends Checked<string> {
  /** Custom directories may return a text in another form, but no code. */
  readonly type: 'text' | 'code'
  /** Code points, 1 at least; not checked when absent. */
  readonly max?: number
  /** Of a URL or an e-mail address, only lines check it. */
  readonly form?: Form | 'url' | 'email'
  /** What messages ask for instead of a value that is no text. Default: text in lines, else the form. */
  readonly noun?: string
  /** What it has to name, if the reader knows all of them. */
  readonly refersTo?: keyof References
  /** Messages do not show the value. */
  readonly isSecret?: true
}

/** Instants are milliseconds since the epoch, RFC 3339 in lines. */
interface NumberFormat extends Checked<number> {
  readonly type: 'integer' | 'instant'
  readonly min?: number
  readonly max?: number
}

interface FlagFormat {
  readonly type: 'flag'
}

interface ListFormat<T> extends Checked<readonly T[]> {
  readonly type: 'list'
  readonly max?: number
  readonly item: Field<T>
  /** How messages call it. Default: a list. */
  readonly noun?: string
}

export interface ObjectFormat<R> extends Checked<R> {
  readonly type: 'object'
  readonly fields: Fields<R>
}

/** What a value that is absent or `null` stands for. */
interface Presence<T> {
  readonly absent: T
  /** Only `null` stands for it. */
  readonly isNullable?: true
}

type Format<T> = T extends string ? TextFormat
  : T extends number ? NumberFormat
  : T extends boolean ? FlagFormat
  : T extends readonly (infer Item)[] ? ListFormat<Item>
  : ObjectFormat<T>

/** A member of type `T`. Without `absent`, it is required. */
export type Field<T> =
  & ([NonNullable<T>] extends [string] ? TextFormat : Format<NonNullable<T>>)
  & (undefined extends T ? Presence<T> : Partial<Presence<T>>)

/** The members of a record in the order of an export. In lines, their names are in snake case. */
export type Fields<R> = { readonly [Member in keyof R]-?: Field<R[Member]> }

export type ScalarFormat = TextFormat | NumberFormat | FlagFormat
export type AnyFormat =
  & (ScalarFormat | ListFormat<unknown> | ObjectFormat<Readonly<Record<string, unknown>>>)
  & Partial<Presence<unknown>>

/** What lines may refer to; an absent member is not checked. */
export interface References {
  /** The industries that exist, each with its parent. */
  readonly industries?: ReadonlyMap<string, string | undefined>
  /** Slugs of all partners, also of removed ones: those stay taken, and exports contain them. */
  readonly partners?: ReadonlySet<string>
}

/** Text of one form. */
export function code(name: string, isValid: (text: string) => boolean): TextFormat {
  return { type: 'code', noun: name, form: [name, isValid] }
}

/** Reads values of one origin. */
export interface ValueReader {
  /** Lines have names in snake case. */
  readonly isLine: boolean
  /** @returns `undefined` after an error. */
  readScalar(format: ScalarFormat, value: unknown, path: string): unknown
  fail(path: string, reason: string): undefined
  checkNames?(names: readonly string[], members: Members, path: string): void
  check?(format: AnyFormat, value: unknown, path: string): void
}

/** @returns The record; parts of it are `undefined` after errors. */
export function readRecord<R>(format: ObjectFormat<R>, value: unknown, reader: ValueReader): R {
  return readValue(format as unknown as AnyFormat, value, '', reader) as R
}

function readValue(format: AnyFormat, value: unknown, path: string, reader: ValueReader): unknown {
  if (value == null && 'absent' in format && !(format.isNullable && value === undefined)) return format.absent
  if (value === undefined && reader.isLine) return reader.fail(path, 'is missing')
  const read = format.type === 'object'
    ? readObject(format.fields, value, path, reader)
    : format.type === 'list'
    ? readList(format, value, path, reader)
    : reader.readScalar(format, value, path)
  if (read !== undefined) reader.check?.(format, read, path)
  return read
}

function readList(format: ListFormat<unknown>, value: unknown, path: string, reader: ValueReader): unknown {
  const { item, noun = 'a list' } = format
  if (!Array.isArray(value)) return reader.fail(path, mustBe(noun, value))
  return Array.from(value, (each, index) => readValue(item as AnyFormat, each, `${path}[${index}]`, reader))
}

function readObject(fields: object, value: unknown, path: string, reader: ValueReader): unknown {
  if (!isObject(value)) return reader.fail(path, mustBe('an object', value))
  const members = membersOf(fields)
  reader.checkNames?.(Object.keys(value), members, path)
  const record: Record<string, unknown> = {}
  for (const [field, [member, format]] of members) {
    const name = reader.isLine ? field : member
    record[member] = readValue(format, value[name], pathOf(path, name), reader)
  }
  return record
}

export function mustBe(expected: string, value: unknown): string {
  return `must be ${expected}, not ${formatValue(value)}`
}

/** The path of a field or item. */
export function pathOf(path: string, at: string | number): string {
  return typeof at === 'number' ? `${path}[${at}]` : path === '' ? at : `${path}.${at}`
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

/** Members by the names of their fields in lines. */
type Members = ReadonlyMap<string, readonly [member: string, format: AnyFormat]>

const membersByFields = new WeakMap<object, Members>()

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
