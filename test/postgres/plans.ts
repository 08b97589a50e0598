import type { Query } from '../../adapters/stores/postgres/connection.ts'
import type { Database } from '../../adapters/stores/postgres/database.ts'

/** A step of how the server has answered a statement, as `EXPLAIN` tells it. */
export interface Plan {
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly Plans?: readonly Plan[]
}

/** A database that has the server tell how it answers what is read. */
export function explaining(database: Database, told: (plan: Plan) => void): Database {
  const explained = (query: Query): Query => async (sql, parameters) => {
    const [row] = await query<[json: string]>(`EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`, parameters)
    told(JSON.parse(row![0])[0].Plan)
    return await query(sql, parameters)
  }
  return {
    ...database,
    read: explained(database.read),
    transaction: (work, options) =>
      database.transaction((query, rollback) => work(explained(query), rollback), options),
  }
}

/** How many rows of tables and indexes were looked at, wanted or not. */
export function rowsRead(plan: Plan): number {
  const own = plan['Relation Name'] === undefined
    ? 0
    : plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0) +
      (plan['Rows Removed by Index Recheck'] ?? 0)
  const below = (plan.Plans ?? []).reduce((sum, inner) => sum + rowsRead(inner), 0)
  return Math.round(own * plan['Actual Loops']) + below
}
