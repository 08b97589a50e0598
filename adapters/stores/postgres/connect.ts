/** The only file that knows the driver. */
import postgres from 'postgres'
import { type Database, type Query, SqlError } from './database.ts'

/** Opens connections to a database. */
export function connect(url: string): Database {
  const { hostname, port, pathname } = new URL(url)
  const sql = postgres(url, {
    fetch_types: false,
    onnotice: () => undefined,
    types: { integer64: { to: 20, from: [20], parse: Number, serialize: String } },
  })
  const on = (runner: Pick<typeof sql, 'unsafe'>): Query => async (text, parameters = []) => {
    try {
      const rows = await runner.unsafe(text, [...parameters] as never[], { prepare: true }).values()
      return rows as unknown as never[]
    } catch (error) {
      if (!(error instanceof postgres.PostgresError)) throw error
      throw new SqlError(error.code, error.message, error.constraint_name)
    }
  }
  const query = on(sql)
  return {
    place: `${hostname}:${port || 5432}${pathname}`,
    lookUp: query,
    note: query,
    read: query,
    write: query,
    async transaction(work, { readOnly } = { readOnly: false }) {
      const undone = Symbol('rolled back')
      let result: Awaited<ReturnType<typeof work>> | typeof undone = undone
      try {
        await sql.begin(readOnly ? 'ISOLATION LEVEL REPEATABLE READ READ ONLY' : '', async (transaction) => {
          let commit = true
          result = await work(on(transaction), () => {
            commit = false
          })
          if (!commit) throw undone
        })
      } catch (error) {
        if (error !== undone) throw error
      }
      return result as Awaited<ReturnType<typeof work>>
    },
    listen(heard) {
      void sql.listen('partner_api', heard, heard).catch(() => undefined)
    },
    notify: () => sql.notify('partner_api', '').then(() => undefined, () => undefined),
    close: () => sql.end({ timeout: 2 }),
  }
}
