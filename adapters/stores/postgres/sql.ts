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
  guarded: 'EXISTS (SELECT 1 FROM guard)',
  skipLocked: 'FOR UPDATE SKIP LOCKED',
  last: (column, characters) => `right(${column}, ${characters})`,
  indexed: (column) => `${column} + 0`,
  // One query to be planned, and not one for each value.
  forEach: (values, sql) =>
    `SELECT rows.* FROM unnest(CAST('{${values}}' AS text[])) AS one (value) CROSS JOIN LATERAL (${
      sql('one.value')
    }) AS rows`,
  selectKeys: (columns, page) => `SELECT ${columns} FROM ${page}`,
  derived: (columns) => columns,
  intruders: [
    'SELECT tgname FROM pg_catalog.pg_trigger WHERE NOT tgisinternal AND tgrelid',
    "SELECT rulename FROM pg_catalog.pg_rewrite WHERE rulename <> '_RETURN' AND ev_class",
    "SELECT relname FROM pg_catalog.pg_class WHERE relkind IN ('v', 'm') AND oid",
    'SELECT polname FROM pg_catalog.pg_policy WHERE polrelid',
  ].map((select) => `
    ${select} IN (
      SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = 'partner_api'
    )`),
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
