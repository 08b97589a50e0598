import type { Database } from './database.ts'

/** Rows that are of use for a while. */
export interface Passing {
  readonly table: string
  readonly key: readonly string[]
  /** The column whose instant tells when. */
  readonly column: string
  /** How many rows are cleared away at once. */
  readonly atOnce: number
}

/**
 * Clears away, behind what is being done, a few of the rows whose instant is not after `instant`, the oldest first. It
 * waits for nobody, and nobody for it: a row that somebody holds stays until the next time.
 */
export type Forget = (instant: number) => void

export function createForget(database: Database, { table, key, column, atOnce }: Passing): Forget {
  // One row with its old and one with its new instant are never taken for each other: the rows are locked first.
  const sql = `
    WITH passed AS (
      SELECT ${key} FROM partner_api.${table} WHERE ${column} <= $1 ORDER BY ${column} LIMIT ${atOnce}
      FOR UPDATE SKIP LOCKED
    )
    DELETE FROM partner_api.${table} WHERE (${key}) IN (SELECT ${key} FROM passed)`
  return (instant) => void database.note(sql, [instant]).catch(() => undefined)
}
