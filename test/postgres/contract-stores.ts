/** Stores for the suite of stores, each in a database in which there is nothing else. */
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { Store } from '../../core/ports.ts'
import { intrude } from './intruder.ts'
import type { PostgresServer } from './server.ts'

export interface ContractStores {
  /** A store in a new database. */
  readonly open: () => Promise<Store>
  /**
   * A new store in a database of which all was dropped that the store before had left there: to make a database takes
   * as long as to make a store. That one must be closed.
   */
  readonly openMany: () => Promise<Store>
}

/** @param way The address under which the store reaches a database of the server. */
export async function contractStores(
  server: PostgresServer,
  way: (url: string) => string = (url) => url,
): Promise<ContractStores> {
  const reused = await server.createDatabase()

  return {
    open: async () => await openPostgresStore(way(await server.createDatabase())),
    async openMany() {
      await intrude(reused, (sql) => sql`drop schema if exists partner_api cascade`)
      return await openPostgresStore(way(reused))
    },
  }
}
