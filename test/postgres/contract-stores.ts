/** Stores for the suite of stores. */
import { randomBytes } from 'node:crypto'
import postgres from 'postgres'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { Store } from '../../core/ports.ts'
import type { PostgresServer } from './server.ts'

export interface ContractStores {
  /** A store in a new database. */
  readonly open: () => Promise<Store>
  /**
   * A store in the database of the one before, which must be closed. Its tables are emptied, and it is as if it had just
   * been made: to make one takes five times as long.
   */
  readonly openMany: () => Promise<Store>
  close(): Promise<void>
}

/** @param way The address under which the stores reach a database of the server. */
export async function contractStores(
  server: PostgresServer,
  way: (url: string) => string = (url) => url,
): Promise<ContractStores> {
  const reused = await server.createDatabase()
  await (await openPostgresStore(reused)).close()
  const sql = postgres(reused, { max: 1, onnotice: () => {} })
  const tables = await sql`select tablename from pg_tables where schemaname = 'partner_api'`
  const filled = tables.map(({ tablename }) => tablename).filter((name) =>
    !['migration', 'store', 'revision'].includes(name)
  )

  return {
    open: async () => await openPostgresStore(way(await server.createDatabase())),
    async openMany() {
      await sql.unsafe(`
        truncate ${filled.map((name) => `partner_api.${name}`)};
        update partner_api.revision set changes = 0, mark = '';
        update partner_api.store
        set id = '${randomBytes(8).toString('hex')}', audit_sequence = 0, audit_seal = ''`)
      return await openPostgresStore(way(reused))
    },
    close: () => sql.end({ timeout: 0 }),
  }
}
