/** Rows of the SQL stores: one column for each field of a record, and NULL for an absent field. */
import { createLruCache } from '../../../core/lib/lru.ts'
import { toSnakeCase } from '../../../core/lib/text.ts'

export type SqlValue = string | number | null

/** A row, its values in the order of the columns. */
export type StoredRow = SqlValue[]

/** Columns of these names hold integers of up to 64 bits; all others hold text. */
export const INTEGER_COLUMNS: ReadonlySet<string> = new Set(
  ('created_at expires_at retires_at last_used_at revoked_at published_at updated_at signups requests ' +
    'errors position sequence at audit_sequence failing_since disabled_at attempts due_at last_status')
    .split(' '),
)

/**
 * The columns as SQL that reads integers as text: a driver throws for one beyond ±2^53, which only another program
 * can have written. The text of a floating-point number would depend on `extra_float_digits`.
 */
export function safeColumns(columns: readonly string[]): string[] {
  return columns.map((column) => INTEGER_COLUMNS.has(column) ? `CAST(${column} AS TEXT)` : column)
}

/** Converts a field to the value of its column and back. */
export interface Codec<Field> {
  encode(field: Field): SqlValue
  // deno-lint-ignore no-explicit-any -- decodes only what it has encoded
  decode(value: any): Field
}

export interface RowFormat<R> {
  readonly columns: readonly string[]
  values(record: R): StoredRow
  read(row: readonly SqlValue[]): R
}

/**
 * @param codecs For fields whose column holds another value.
 * @returns Takes all fields of the records, each of which is in the column of its name in snake case.
 */
export function createRowFormat<R extends object>(codecs: { readonly [F in keyof R]?: Codec<R[F]> } = {}) {
  return <F extends keyof R & string>(
    fields: readonly F[] & (keyof R extends F ? unknown : never),
  ): RowFormat<R> => {
    const codecOf = fields.map((field) => codecs[field])
    // Copying an object of the right shape is ten times as fast as adding fields one by one.
    const template = Object.fromEntries(fields.map((field) => [field, undefined])) as R
    return {
      columns: fields.map(toSnakeCase),
      values: (record) =>
        fields.map((field, index) => {
          const codec = codecOf[index]
          return codec === undefined ? (record[field] ?? null) as SqlValue : codec.encode(record[field])
        }),
      read(row) {
        const record: Record<keyof R, unknown> = { ...template }
        for (let index = 0; index < fields.length; index++) {
          const codec = codecOf[index]
          record[fields[index]!] = codec === undefined ? row[index] ?? undefined : codec.decode(row[index])
        }
        return record as R
      },
    }
  }
}

const noWords: readonly string[] = Object.freeze([])

/** Partners and keys share a few combinations: each list is created once. */
const wordLists = createLruCache<readonly string[]>(1_000)

/** A list of words as one text, and an empty one as NULL. */
export const wordList: Codec<readonly string[]> = {
  encode: (words) => words.length === 0 ? null : words.join(' '),
  decode: (text: string | null) =>
    text === null ? noWords : wordLists.getOrMake(text, () => Object.freeze(text.split(' '))),
}

/** An SQL condition: the words of a column, which may be NULL, include that of a parameter. */
export function includesWord(column: string, word: string): string {
  const words = `(' ' || ${column} || ' ')`
  // Not LIKE, which has special characters and, in SQLite, ignores case.
  return `${column} IS NOT NULL AND replace(${words}, ' ' || CAST(${word} AS TEXT) || ' ', '') <> ${words}`
}
