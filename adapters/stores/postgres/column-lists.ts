/** Rows on their way to the server: each parameter is the list of a column. */
import { INTEGER_COLUMNS, type Value } from '../row-format.ts'
import { listText } from './connection/database.ts'

/** The rows of `parametersOf`, in SQL. */
export function listsOf(columns: readonly string[]): string {
  return `unnest(${columns.map((column, index) => `$${index + 1}::${typeOf(column)}[]`)})`
}

/** @param rows One or more. */
export function parametersOf(rows: readonly (readonly Value[])[]): string[] {
  return rows[0]!.map((_, column) => listText(rows.map((row) => row[column]!)))
}

export function typeOf(column: string): 'bigint' | 'text' {
  return INTEGER_COLUMNS.has(column) ? 'bigint' : 'text'
}

/** Writes rows, whatever was there under their first columns; some columns stay as they are there. */
export function upsert(table: string, columns: readonly string[], ...kept: readonly string[]): string {
  const [primary, ...others] = columns
  const changed = others.filter((column) => !kept.includes(column))
  return `
    INSERT INTO partner_api.${table} (${columns}) SELECT * FROM ${listsOf(columns)}
    ON CONFLICT (${primary}) DO UPDATE SET ${changed.map((column) => `${column} = excluded.${column}`)}`
}
