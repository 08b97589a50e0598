/** Stores for the suite of stores. */
import { randomBytes } from 'node:crypto'
import postgres from 'postgres'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { Store } from '../../core/ports/store.ts'
import { PATIENT, type PostgresServer } from './server.ts'

export interface ContractStores {
  /** A store in a new database, which goes with it. */
  readonly open: () => Promise<Store>
  /**
   * One store that stays open, as if it had just been made: all that was put into it since is deleted. A server takes
   * fifty times as long to make one, and to get to know it.
   */
  readonly openMany: () => Promise<Store>
  close(): Promise<void>
}

/** @param way The address under which the stores reach a database of the server. */
export async function contractStores(
  server: PostgresServer,
  way: (url: string) => string = (url) => url,
): Promise<ContractStores> {
  const url = await server.createDatabase()
  const many = await openPostgresStore(way(url), PATIENT)
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  // What was made last refers to what was made before.
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class c join pg_namespace n on n.oid = relnamespace
    where nspname = 'partner_api' and relkind = 'r' and relname not in ('migration', 'store', 'revision')
    order by c.oid desc`
  const empty = tables.map(({ name }) => `delete from partner_api.${name};`).join('\n')

  return {
    async open() {
      const url = await server.createDatabase()
      const store = await openPostgresStore(way(url), PATIENT)
      return {
        ...store,
        async close() {
          await store.close()
          await server.dropDatabase(url)
        },
      }
    },
    async openMany() {
      await sql.unsafe(`
        ${empty}
        update partner_api.revision set changes = 0, mark = '${randomBytes(8).toString('hex')}';
        update partner_api.store set audit_sequence = 0, audit_seal = ''`)
      return { ...many, close: () => Promise.resolve() }
    },
    async close() {
      await many.close()
      await sql.end({ timeout: 0 })
    },
  }
}
