/** Stores for the contracts: a server takes fifty times as long to create one as to empty one. */
import { randomBytes } from 'node:crypto'
import postgres from 'postgres'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { Store } from '../../core/ports/store.ts'
import { PATIENT, type PostgresServer } from './server.ts'

/** @param way The URL under which stores reach a database of the server. */
export async function contractStore(server: PostgresServer, way = (url: string) => url) {
  const url = await server.createDatabase()
  const open = () => openPostgresStore(way(url), PATIENT)
  const store = await open()
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  // Newer tables refer to older ones.
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class c join pg_namespace n on n.oid = relnamespace
    where nspname = 'partner_api' and relkind = 'r' and relname not in ('migration', 'store', 'revision')
    order by c.oid desc`
  const empty = tables.map(({ name }) => `delete from partner_api.${name};`).join('\n')

  return {
    open,
    /** Empties the store, which stays open. */
    async emptied(): Promise<Store> {
      await sql.unsafe(`
        ${empty}
        update partner_api.revision set changes = 0, mark = '${randomBytes(8).toString('hex')}';
        update partner_api.store set audit_sequence = 0, audit_hash = ''`)
      return { ...store, close: () => Promise.resolve() }
    },
    async close() {
      await store.close()
      await sql.end({ timeout: 0 })
    },
  }
}
