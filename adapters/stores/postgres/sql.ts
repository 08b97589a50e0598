/** Pieces of statements. Rows are sent as one list per column. */
import { INTEGER_COLUMNS, type Value } from '../row-format.ts'
import type { WebhookDialect } from '../webhooks.ts'
import type { Database } from './database.ts'

/** The server's clock, which all replicas share: milliseconds since the epoch. */
export const SERVER_NOW = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

export const WEBHOOK_DIALECT: WebhookDialect = {
  now: SERVER_NOW,
  rows: (parameter) => `jsonb_array_elements(CAST(${parameter} AS jsonb)) AS element (value)`,
  forUpdate: ' FOR UPDATE',
  skipLocked: 'FOR UPDATE SKIP LOCKED',
}

/** A list as the text of a Postgres array, for `$1::text[]` and the like. */
export function listText(values: readonly (string | number | null)[]): string {
  return `{${values.map((value) => value === null ? 'NULL' : quoted(String(value))).join(',')}}`
}

function quoted(text: string): string {
  // Without control characters and lone surrogates, JSON escapes the same. `replaceAll` takes four times as long.
  if (!/[\p{Cc}\p{Cs}]/u.test(text)) return JSON.stringify(text)
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

/** @param rows One or more. @returns A list for each column. */
export function columnParameters(rows: readonly (readonly Value[])[]): string[] {
  return rows[0]!.map((_, column) => listText(rows.map((row) => row[column]!)))
}

/** The rows of `columnParameters`, as a table. */
export function unnestColumns(columns: readonly string[]): string {
  return `unnest(${columns.map((column, index) => `$${index + 1}::${columnType(column)}[]`)})`
}

export function columnType(column: string): 'bigint' | 'text' {
  return INTEGER_COLUMNS.has(column) ? 'bigint' : 'text'
}

interface UpsertOptions {
  /** Default: the first column. */
  readonly keys?: readonly string[]
  /** Further columns, with the SQL that they follow from. */
  readonly derived?: Readonly<Record<string, string>>
  /** Columns that stay as they are in existing rows. */
  readonly preserved?: readonly string[]
}

/** Inserts or replaces the rows of `columnParameters` by their keys. */
export function upsertSql(table: string, columns: readonly string[], options: UpsertOptions = {}): string {
  const { keys = columns.slice(0, 1), derived = {}, preserved = [] } = options
  const all = [...columns, ...Object.keys(derived)]
  const changed = all.filter((column) => !keys.includes(column) && !preserved.includes(column))
  return `
    INSERT INTO partner_api.${table} (${all})
    SELECT ${[...columns, ...Object.values(derived)]} FROM ${unnestColumns(columns)} AS given (${columns})
    ON CONFLICT (${keys}) DO UPDATE SET ${changed.map((column) => `${column} = excluded.${column}`)}`
}

interface PruneTarget {
  readonly table: string
  readonly key: readonly string[]
  /** An SQL expression. */
  readonly expiry: string
  /** An SQL condition on `$1`. Default: `expiry` is at or before `$1`, and past by the server's clock. */
  readonly condition?: string
  readonly batchSize: number
}

/**
 * Deletes a batch of expired rows in the background, the oldest first. Locked rows are skipped: they are deleted another
 * time.
 */
export function createPruner<Bound extends number | string = number>(
  database: Database,
  { table, key, expiry, condition, batchSize }: PruneTarget,
): (bound: Bound) => void {
  const sql = `
    WITH expired AS (
      SELECT ${key} FROM partner_api.${table}
      WHERE ${condition ?? `${expiry} <= (SELECT least($1::bigint, ${SERVER_NOW}))`}
      ORDER BY ${expiry} LIMIT ${batchSize} FOR UPDATE SKIP LOCKED
    )
    DELETE FROM partner_api.${table} WHERE (${key}) IN (SELECT ${key} FROM expired)`
  return (bound) => void database.asyncCommit(sql, [bound]).catch(() => undefined)
}
