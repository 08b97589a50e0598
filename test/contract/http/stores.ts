/** Stores for the suites: empty ones, opened once by the operator and once by the service. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMemoryStore } from '../../../adapters/stores/memory/store.ts'
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import { openSqliteStore } from '../../../adapters/stores/sqlite/store.ts'
import type { Store } from '../../../core/ports/store.ts'
import { PATIENT, type PostgresServer } from '../../postgres/server.ts'
import type { OpenStores } from './deploy.ts'

/** A file of its own, with two connections. */
export async function sqliteFile(): Promise<OpenStores> {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-http-'))
  const file = join(folder, 'store.db')
  return await openTwice(() => openSqliteStore(file), () => rmSync(folder, { recursive: true, force: true }))
}

/** Databases of their own on a server, each with the connections of two processes. */
export function postgresDatabases(server: PostgresServer): () => Promise<OpenStores> {
  return async () => {
    const url = await server.createDatabase()
    return await openTwice(() => openPostgresStore(url, PATIENT), () => server.dropDatabase(url))
  }
}

async function openTwice(
  openStore: () => Promise<Store>,
  remove: () => void | Promise<void>,
): Promise<OpenStores> {
  const open: Store[] = []
  const connect = async (): Promise<Store> => {
    const store = await openStore()
    open.push(store)
    return store
  }
  return {
    operator: await connect(),
    served: connect,
    async close() {
      for (const store of open) await store.close()
      await remove()
    },
  }
}

/** The same store for both: there is no second way into a memory. */
export function memory(): Promise<OpenStores> {
  const store = createMemoryStore()
  return Promise.resolve({
    operator: store,
    served: () => Promise.resolve(store),
    close: () => Promise.resolve(store.close()),
  })
}
