import postgres, { type Sql } from 'postgres'

/** Does something in a database past the store, on a connection of its own. */
export async function intrude<T>(url: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    return await work(sql)
  } finally {
    await sql.end({ timeout: 0 })
  }
}
