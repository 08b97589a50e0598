import type { Database } from '../connection/database.ts'

/** Rows that are of use for a while. */
export interface Passing {
  readonly table: string
  readonly key: readonly string[]
  /** Until when, in SQL: a column or made of some. */
  readonly until: string
  /** How many rows are cleared away at once. */
  readonly atOnce: number
}

/**
 * Clears away, behind what is being done, a few of the rows that were of use until `instant` or before, the oldest first.
 * It waits for nobody, and nobody for it: a row that somebody holds stays until the next time.
 */
export type Forget = (instant: number) => void

export function createForget(database: Database, { table, key, until, atOnce }: Passing): Forget {
  const sql = `
    WITH passed AS (
      SELECT ${key} FROM partner_api.${table} WHERE ${until} <= $1 ORDER BY ${until} LIMIT ${atOnce}
      FOR UPDATE SKIP LOCKED
    )
    DELETE FROM partner_api.${table} WHERE (${key}) IN (SELECT ${key} FROM passed)`
  return (instant) => void database.note(sql, [instant]).catch(() => undefined)
}
