import { type Module, MODULE_NAMES, type Scope, SCOPES } from '../../core/policy/modules.ts'

/** Rows of SQL stores that hold each field of a record in a column of its own. What is absent is NULL. */

/** What a column holds. */
export type Value = string | number | null

/** A row of a `RowFormat`, its values in the order of the columns. */
export type StoredRow = Value[]

/** The columns of these names hold integers of 64 bits or less; all others hold text. */
export const INTEGER_COLUMNS: ReadonlySet<string> = new Set([
  'modules',
  'scopes',
  'created_at',
  'expires_at',
  'retires_at',
  'last_used_at',
  'retired',
  'revoked_at',
  'published_at',
  'updated_at',
  'signups',
  'requests',
  'errors',
  'sequence',
  'at',
])

/** How a field is held by its column. */
export interface Codec<Field> {
  encode(field: Field): Value
  // deno-lint-ignore no-explicit-any -- each decodes what it has encoded
  decode(value: any): Field
}

/** How records stand in the columns of a table. */
export interface RowFormat<R> {
  readonly fields: readonly (keyof R)[]
  readonly columns: readonly string[]
  values(record: R): StoredRow
  read(row: readonly Value[]): R
}

/**
 * @param columns The column of each field, in the order of both.
 * @param codecs Of fields that columns do not hold as they are.
 */
export function createRowFormat<R extends object>(
  columns: { readonly [Field in keyof R]-?: string },
  codecs: { readonly [Field in keyof R]?: Codec<R[Field]> } = {},
): RowFormat<R> {
  const fields = Object.keys(columns) as (keyof R)[]
  const codecOf = fields.map((field) => codecs[field])
  // A copy of it has its shape at once: a record whose fields are added one by one costs ten times as much.
  const template = Object.fromEntries(fields.map((field) => [field, undefined])) as R
  return {
    fields,
    columns: Object.values(columns),
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

/** Frozen: stores hold these bits. A new name takes a new bit, a bit is never used again. */
const moduleBits = {
  widget: 1,
  profiles: 2,
  banner: 4,
  countries: 8,
  industries: 16,
  pricing: 32,
  signup: 64,
  reporting: 128,
} satisfies Record<Module, number>

/** Frozen, like `moduleBits`. */
const scopeBits = {
  'read:partner-widget': 1,
  'read:profiles': 2,
  'read:banner': 4,
  'read:countries': 8,
  'read:industries': 16,
  'read:plans': 32,
  'create:partner-signups': 64,
  'read:partner-reports': 128,
} satisfies Record<Scope, number>

/** Names as an integer and back, in the order of the list that they come from. */
export interface BitSet<Name extends string> {
  encode(names: readonly Name[]): number
  decode(bits: number): readonly Name[]
}

export const moduleSet: BitSet<Module> = createBitSet(MODULE_NAMES, moduleBits)
export const scopeSet: BitSet<Scope> = createBitSet(SCOPES, scopeBits)

function createBitSet<Name extends string>(
  names: readonly Name[],
  bits: Readonly<Record<Name, number>>,
): BitSet<Name> {
  // Partners and keys use few of the combinations, over and over: each list is made once and shared.
  const cache = new Map<number, readonly Name[]>()

  return {
    encode: (held) => held.reduce((sum, name) => sum | bits[name], 0),
    decode(sum) {
      let held = cache.get(sum)
      if (held === undefined) {
        held = Object.freeze(names.filter((name) => sum & bits[name]))
        cache.set(sum, held)
      }
      return held
    },
  }
}
