/** Pieces of statements. */
import type { Dialect } from '../sql/database.ts'

/** The server's clock, which all replicas share: milliseconds since the epoch. */
export const SERVER_NOW = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

export const DIALECT: Dialect = {
  now: SERVER_NOW,
  elements: (parameter) => `jsonb_array_elements(CAST(${parameter} AS jsonb)) AS element (value)`,
  least: 'least',
  greatest: 'greatest',
  forUpdate: 'FOR UPDATE',
  skipLocked: 'FOR UPDATE SKIP LOCKED',
  indexed: (column) => `${column} + 0`,
  derived: (columns) => columns,
}

/** A list as the text of a Postgres array, for `$1::text[]` and the like. */
export function listText(values: readonly string[]): string {
  return `{${values.map(quoted).join(',')}}`
}

function quoted(text: string): string {
  // Without control characters and lone surrogates, JSON escapes the same. `replaceAll` takes four times as long.
  if (!/[\p{Cc}\p{Cs}]/u.test(text)) return JSON.stringify(text)
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
