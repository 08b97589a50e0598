/** Rows on their way to the server: each parameter is the list of a column. */
import { INTEGER_COLUMNS, type Value } from '../row-format.ts'
import type { Database } from './database.ts'

/** The rows of `parametersOf`, in SQL. */
export function unnestColumns(columns: readonly string[]): string {
  return `unnest(${columns.map((column, index) => `$${index + 1}::${columnType(column)}[]`)})`
}

/** @param rows One or more. */
export function columnParameters(rows: readonly (readonly Value[])[]): string[] {
  return rows[0]!.map((_, column) => listText(rows.map((row) => row[column]!)))
}

export function columnType(column: string): 'bigint' | 'text' {
  return INTEGER_COLUMNS.has(column) ? 'bigint' : 'text'
}

/** Writes rows, whatever was there under their first columns; some columns stay as they are there. */
export function upsertSql(
  table: string,
  columns: readonly string[],
  ...preserved: readonly string[]
): string {
  const [primary, ...others] = columns
  const changed = others.filter((column) => !preserved.includes(column))
  return `
    INSERT INTO partner_api.${table} (${columns}) SELECT * FROM ${unnestColumns(columns)}
    ON CONFLICT (${primary}) DO UPDATE SET ${changed.map((column) => `${column} = excluded.${column}`)}`
}

/** The server's clock, milliseconds since the epoch: the one clock that all replicas have. */
export const SERVER_NOW = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/** Rows that are of use for a while. */
export interface PruneTarget {
  readonly table: string
  readonly key: readonly string[]
  /** Until when, in SQL: a column or made of some. */
  readonly expiry: string
  /** The condition for a row to go, in SQL, given `$1`. Default: `until` is an instant that is not after `$1`. */
  readonly condition?: string
  /** How many rows are cleared away at once. */
  readonly batchSize: number
}

/**
 * Clears away, behind what is being done, a few of the rows that are over, the oldest first; never what is still of use by
 * the server's clock. It waits for nobody, and nobody for it: a row that somebody holds stays until the next time.
 */
export type Prune<Bound> = (bound: Bound) => void

export function createPruner<Bound extends number | string = number>(
  database: Database,
  {
    table,
    key,
    expiry: until,
    condition: isOver = `${until} <= (SELECT least($1::bigint, ${SERVER_NOW}))`,
    batchSize: atOnce,
  }: PruneTarget,
): Prune<Bound> {
  const sql = `
    WITH passed AS (
      SELECT ${key} FROM partner_api.${table} WHERE ${isOver} ORDER BY ${until} LIMIT ${atOnce}
      FOR UPDATE SKIP LOCKED
    )
    DELETE FROM partner_api.${table} WHERE (${key}) IN (SELECT ${key} FROM passed)`
  return (bound) => void database.asyncCommit(sql, [bound]).catch(() => undefined)
}

/** A list as the text of a Postgres array, for `$1::text[]` and the like. */
export function listText(values: readonly (string | number | null)[]): string {
  return `{${values.map((value) => value === null ? 'NULL' : quoted(String(value))).join(',')}}`
}

function quoted(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
