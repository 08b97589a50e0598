import {
  BUILT_IN_MODULES,
  type BuiltInModule,
  type Module,
  MODULE_NAMES,
  type Scope,
  SCOPES,
} from '../../core/model.ts'

/** Rows of the SQL stores: one column for each field of a record, and NULL for an absent field. */

export type Value = string | number | null

/** A row, its values in the order of the columns. */
export type StoredRow = Value[]

/** Columns of these names hold integers of up to 64 bits; all others hold text. */
export const INTEGER_COLUMNS: ReadonlySet<string> = new Set(
  ('modules scopes created_at expires_at retires_at last_used_at revoked_at published_at updated_at signups requests ' +
    'errors position sequence at audit_sequence failing_since disabled_at attempts due_at last_status')
    .split(' '),
)

/**
 * The columns as SQL that reads integers as floating point: a driver throws for an integer beyond ±2^53, which only
 * another program can have written.
 */
export function safeColumns(columns: readonly string[]): string[] {
  return columns.map((column) => INTEGER_COLUMNS.has(column) ? `CAST(${column} AS DOUBLE PRECISION)` : column)
}

/** Converts a field to the value of its column and back. */
export interface Codec<Field> {
  encode(field: Field): Value
  // deno-lint-ignore no-explicit-any -- decodes only what it has encoded
  decode(value: any): Field
}

export interface RowFormat<R> {
  readonly columns: readonly string[]
  values(record: R): StoredRow
  read(row: readonly Value[]): R
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
      columns: fields.map((field) => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)),
      values: (record) =>
        fields.map((field, index) => {
          const codec = codecOf[index]
          return codec === undefined ? (record[field] ?? null) as Value : codec.encode(record[field])
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

/** Frozen: stores contain these bits. A new built-in module gets a new bit, and no bit is reused. Its scope has the same. */
const moduleBits: Readonly<Record<BuiltInModule, number>> = {
  widget: 1,
  profiles: 2,
  banner: 4,
  countries: 8,
  industries: 16,
  pricing: 32,
  signup: 64,
  reporting: 128,
}

const bitOf = (module: Module | undefined): number => moduleBits[module as BuiltInModule] ?? 0

export const moduleSet: Codec<readonly Module[]> = createBitSet<Module>(MODULE_NAMES, bitOf)
export const scopeSet: Codec<readonly Scope[]> = createBitSet<Scope>(
  SCOPES,
  (scope) => bitOf(BUILT_IN_MODULES.moduleFor(scope)),
)

/** Names as one integer, without those that have no bit. They are decoded in the order of `names`. */
function createBitSet<Name extends string>(
  names: readonly Name[],
  bitOf: (name: Name) => number,
): Codec<readonly Name[]> {
  // Partners and keys share a few combinations: each list is created once.
  const lists = new Map<number, readonly Name[]>()

  return {
    encode: (held) => held.reduce((sum, name) => sum | bitOf(name), 0),
    decode(sum: number) {
      let held = lists.get(sum)
      if (held === undefined) {
        held = Object.freeze(names.filter((name) => sum & bitOf(name)))
        lists.set(sum, held)
      }
      return held
    },
  }
}

/** Adds a column for the names of a field that have no bit: modules and scopes that the operator has defined. */
export function withOwnNames<F extends string, R extends { readonly [Field in F]: readonly string[] }>(
  format: RowFormat<R>,
  field: F,
  bits: Codec<readonly string[]>,
): RowFormat<R> {
  const end = format.columns.length
  return {
    columns: [...format.columns, `own_${field}`],
    values(record) {
      const own = record[field].filter((name) => bits.encode([name]) === 0)
      return [...format.values(record), own.length === 0 ? null : own.join(' ')]
    },
    read(row) {
      const record = format.read(row)
      const own = row[end]
      return own == null ? record : { ...record, [field]: [...record[field], ...String(own).split(' ')] }
    },
  }
}

/** A list of words as one text, and an empty one as NULL. */
export const wordList: Codec<readonly string[]> = {
  encode: (words) => words.length === 0 ? null : words.join(' '),
  decode: (text) => text === null ? [] : Object.freeze(String(text).split(' ')),
}

/** An SQL condition: the words of a column, which may be NULL, include that of a parameter. */
export function includesWord(column: string, word: string): string {
  const words = `(' ' || ${column} || ' ')`
  // Not LIKE, which has special characters and, in SQLite, ignores case.
  return `${column} IS NOT NULL AND replace(${words}, ' ' || CAST(${word} AS TEXT) || ' ', '') <> ${words}`
}
