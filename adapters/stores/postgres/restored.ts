import { createClock } from '../../../core/lib/clock.ts'
import { connect } from './database.ts'
import { checkMigrated } from './migrate.ts'
import { createRevisions } from './revisions.ts'
import { createSqlDatabase } from './sql-database.ts'

/**
 * Opens a store that was restored, or the one that it replaces.
 *
 * @throws {StoreError} as `openPostgresStore` does without `migrate`.
 */
export async function openRestored(url: string) {
  const database = connect(url)
  try {
    await checkMigrated(database)
    const revisions = createRevisions(database)
    await revisions.current(database.read)
    const { now } = createClock(revisions.clock)
    return { sql: createSqlDatabase(database, revisions), now, close: database.close }
  } catch (error) {
    await database.close()
    throw error
  }
}
