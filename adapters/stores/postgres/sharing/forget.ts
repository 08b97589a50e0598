import type { Database } from '../connection/database.ts'

/** The server's clock, milliseconds since the epoch: the one clock that all replicas have. */
export const SERVER_NOW = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/** Rows that are of use for a while. */
export interface Passing {
  readonly table: string
  readonly key: readonly string[]
  /** Until when, in SQL: a column or made of some. */
  readonly until: string
  /** The condition for a row to go, in SQL, given `$1`. Default: `until` is an instant that is not after `$1`. */
  readonly isOver?: string
  /** How many rows are cleared away at once. */
  readonly atOnce: number
}

/**
 * Clears away, behind what is being done, a few of the rows that are over, the oldest first; never what is still of use by
 * the server's clock. It waits for nobody, and nobody for it: a row that somebody holds stays until the next time.
 */
export type Forget<Bound> = (bound: Bound) => void

export function createForget<Bound extends number | string = number>(
  database: Database,
  { table, key, until, isOver = `${until} <= (SELECT least($1::bigint, ${SERVER_NOW}))`, atOnce }: Passing,
): Forget<Bound> {
  const sql = `
    WITH passed AS (
      SELECT ${key} FROM partner_api.${table} WHERE ${isOver} ORDER BY ${until} LIMIT ${atOnce}
      FOR UPDATE SKIP LOCKED
    )
    DELETE FROM partner_api.${table} WHERE (${key}) IN (SELECT ${key} FROM passed)`
  return (bound) => void database.note(sql, [bound]).catch(() => undefined)
}
