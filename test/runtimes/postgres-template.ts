import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { PostgresServer } from '../postgres/server.ts'
import { readingFrom, type StandbyServer } from '../postgres/standby.ts'
import { fillWorld } from '../support/world.ts'
import type { Copied } from './template.ts'

/**
 * Creates a world in a database that PostgreSQL copies.
 *
 * @param standby Answers reads of the copies. It has them when they are there.
 */
export async function makePostgresTemplate(
  server: PostgresServer,
  standby?: Pick<StandbyServer, 'port' | 'admin' | 'caughtUp'>,
): Promise<Copied & { reads(): number }> {
  const original = await server.createDatabase()
  const store = await openPostgresStore(original)
  const { keys, lines, importedAt } = await fillWorld(store)
  // A template database must have no connections.
  await store.close()
  const nameOf = (url: string): string => /\w+(?=\?|$)/.exec(url)![0]
  let copies = 0
  let reads = 0
  return {
    filling: { keys, lines, importedAt },
    async copy() {
      const name = `${nameOf(original)}_${copies++}`
      const { admin, user } = server
      await admin`create database ${admin(name)} owner ${admin(user)} template ${admin(nameOf(original))}`
      await standby?.caughtUp()
      return standby ? readingFrom(server.url(name), standby.port) : server.url(name)
    },
    async discard(url) {
      const [found] = await (standby ?? server).admin`
        select xact_commit::integer as reads from pg_stat_database where datname = ${nameOf(url)}`
      reads += found?.['reads']
      await server.dropDatabase(server.url(nameOf(url)))
    },
    /** The number of transactions on the server that answers reads, in copies that were discarded. */
    reads: () => reads,
  }
}
