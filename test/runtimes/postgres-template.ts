import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { Databases } from '../postgres/server.ts'
import { fillWorld } from '../support/world.ts'
import type { Copied } from './template.ts'

/** Creates a world in a database that PostgreSQL copies. */
export async function makePostgresTemplate(server: Databases): Promise<Copied> {
  const original = await server.createDatabase()
  const store = await openPostgresStore(original)
  const { keys, lines, importedAt } = await fillWorld(store)
  // A template database must have no connections.
  await store.close()
  const nameOf = (url: string): string => /\w+(?=\?|$)/.exec(url)![0]
  let copies = 0
  return {
    filling: { keys, lines, importedAt },
    async copy() {
      const name = `${nameOf(original)}_${copies++}`
      const { admin, user } = server
      await admin`create database ${admin(name)} owner ${admin(user)} template ${admin(nameOf(original))}`
      return server.url(name)
    },
    discard: server.dropDatabase,
  }
}
