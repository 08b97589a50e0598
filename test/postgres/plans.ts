import type { PostgresQuery } from '../../adapters/stores/postgres/connection.ts'
import type { PostgresDatabase } from '../../adapters/stores/postgres/database.ts'

/** A node of an executed query plan, as in `EXPLAIN`. */
export interface Plan {
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly Plans?: readonly Plan[]
}

/** A database that explains every read. */
export function explaining(database: PostgresDatabase, onPlan: (plan: Plan) => void): PostgresDatabase {
  const explained = (query: PostgresQuery): PostgresQuery => async (sql, parameters) => {
    const [row] = await query<[json: string]>(`EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`, parameters)
    onPlan(JSON.parse(row![0])[0].Plan)
    return await query(sql, parameters)
  }
  return {
    ...database,
    read: explained(database.read),
    transaction: (work, options) =>
      database.transaction((query, rollback) => work(explained(query), rollback), options),
  }
}

/** The number of rows read from tables and indexes, including filtered ones. */
export function rowsRead(plan: Plan): number {
  const own = plan['Relation Name'] === undefined
    ? 0
    : plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0) +
      (plan['Rows Removed by Index Recheck'] ?? 0)
  const below = (plan.Plans ?? []).reduce((sum, inner) => sum + rowsRead(inner), 0)
  return Math.round(own * plan['Actual Loops']) + below
}
