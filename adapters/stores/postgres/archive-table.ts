import type { RowKey, WritableTable } from '../copy/archive.ts'
import type { SqlTable } from '../copy/columns.ts'
import { danglingRow } from '../copy/unfit-row.ts'
import { StoreError } from '../store-error.ts'
import type { Value } from '../row-format.ts'
import { listsOf, parametersOf, typeOf } from './column-lists.ts'
import { type Database, type Query, SqlError } from './connection/database.ts'

/** What of a table is not done as everywhere. */
export interface TableWays<R> {
  /** Columns that follow from those that are written, and how. */
  readonly derived?: Readonly<Record<string, string>>
  /** The same, of columns that end the primary key. */
  readonly keyEnd?: Readonly<Record<string, string>>
  /** Columns of which a row is the sum over several of the table. */
  readonly sums?: readonly string[]
  /** Does what has to be done before the rows with these keys, of one column each, are removed. */
  readonly beforeRemoval?: (query: Query, keys: readonly string[]) => Promise<void>
  /** Writes rows and removes those with these keys, of one column each. */
  readonly change?: (query: Query, rows: readonly R[], keys: readonly string[]) => Promise<void>
}

/** A table of a database as it is copied: rows are read by key, and written in few statements. */
export function createTable<R>(
  database: Database,
  form: SqlTable<R>,
  ways: TableWays<R> = {},
): WritableTable<R> {
  const { first, next, upsert, erase } = statementsFor(form, ways)

  async function change(query: Query, rows: readonly R[], surplus: readonly RowKey[]): Promise<void> {
    const gone = surplus.map(([key]) => String(key))
    if (ways.change !== undefined) return await ways.change(query, rows, gone)
    if (rows.length > 0) await query(upsert, parametersOf(rows.map(form.values)))
    if (surplus.length === 0) return
    await ways.beforeRemoval?.(query, gone)
    await query(erase, parametersOf(surplus))
  }

  return {
    async read(after, limit) {
      const rows = await explaining(
        database,
        () =>
          after === undefined
            ? database.read<Value[]>(first, [limit])
            : database.read<Value[]>(next, [...after, limit]),
      )
      return rows.map(form.read)
    },

    write: (rows, surplus) =>
      explaining(database, () => database.transaction((query) => change(query, rows, surplus))),
  }
}

/** Passes on what the server says to a statement as what it means for a copy. */
export async function explaining<T>({ place }: Database, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof SqlError)) throw error
    // foreign_key_violation
    if (error.code === '23503') throw danglingRow(place, error)
    throw new StoreError('unreachable', `The store ${place} cannot be copied: ${error.message}.`, {
      cause: error,
    })
  }
}

function statementsFor<R>({ name, columns, keyLength }: SqlTable<R>, ways: TableWays<R>) {
  const { derived = {}, keyEnd = {}, sums = [] } = ways
  const table = `partner_api.${name}`
  const keys = columns.slice(0, keyLength)
  const others = [...columns.slice(keyLength), ...Object.keys(derived)]
  const selected = columns.map((column) => sums.includes(column) ? `sum(${column})::bigint` : column)
  const place = keys.map((key, index) => `$${index + 1}::${typeOf(key)}`)
  const page = (where: string, limit: number) => `
    SELECT ${selected} FROM ${table} ${where} ${sums.length > 0 ? `GROUP BY ${keys}` : ''}
    ORDER BY ${keys} LIMIT $${limit}`
  return {
    first: page('', 1),
    next: page(`WHERE (${keys}) > (${place})`, keyLength + 1),
    upsert: `
      INSERT INTO ${table} (${[...columns, ...Object.keys(derived), ...Object.keys(keyEnd)]})
      SELECT ${[...columns, ...Object.values(derived), ...Object.values(keyEnd)]}
      FROM ${listsOf(columns)} AS given (${columns})
      ON CONFLICT (${[...keys, ...Object.keys(keyEnd)]})
      DO UPDATE SET ${others.map((column) => `${column} = excluded.${column}`)}`,
    erase: `DELETE FROM ${table} WHERE (${keys}) IN (SELECT * FROM ${listsOf(keys)} AS gone)`,
  }
}
