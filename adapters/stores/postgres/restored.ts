import { createClock } from '../../../core/lib/clock.ts'
import { connect, type PostgresDatabase } from './database.ts'
import { isStatementError } from './errors.ts'
import { checkMigrated } from './migrate.ts'
import { inUseError, LIVE_REPLICAS } from './replicas.ts'
import { createRevisions } from './revisions.ts'
import { createSqlDatabase } from './sql-database.ts'

type RestoredStore = Awaited<ReturnType<typeof openRestored>>

/**
 * Opens a store that was restored, or the one that it replaces.
 *
 * @throws {StoreError} as `openPostgresStore` does without `migrate`.
 */
export async function openRestored(url: string) {
  const database = connect(url)
  const { location, read, close } = database
  try {
    await checkMigrated(database)
    const revisions = createRevisions(database)
    await revisions.current(read)
    const { now } = createClock(revisions.clock)
    return {
      location,
      read,
      identity: await readIdentity(read),
      sql: createSqlDatabase(database, revisions),
      now,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * What a database has under each of its names.
 *
 * @returns `undefined` where the server does not have it: not every compatible one does.
 */
async function readIdentity(read: PostgresDatabase['read']): Promise<string | undefined> {
  try {
    const [row] = await read<[system: string, database: string]>(`
      SELECT CAST(c.system_identifier AS TEXT), CAST(d.oid AS TEXT)
      FROM pg_catalog.pg_control_system() AS c, pg_catalog.pg_database AS d
      WHERE d.datname = pg_catalog.current_database()`)
    return row?.join(' ')
  } catch (error) {
    if (isStatementError(error)) return undefined
    throw error
  }
}

/**
 * Checks that no server uses a restored store. Those that its dump has registered, and that use the
 * replaced one, do not count.
 *
 * @throws {StoreError} `refused`
 */
export async function assertNotServed(
  { read, location }: RestoredStore,
  replaced: RestoredStore | undefined,
): Promise<void> {
  const live = await read<[id: string, name: string]>(`SELECT id, name FROM ${LIVE_REPLICAS} ORDER BY name`)
  const others = new Set((await replaced?.read<[id: string]>('SELECT id FROM partner_api.replica'))?.flat())
  const names = live.filter(([id]) => !others.has(id)).map(([, name]) => name)
  if (names.length > 0) throw inUseError(location, names)
}
