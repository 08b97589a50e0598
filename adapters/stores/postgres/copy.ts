import { type CopyTarget, createCopyTarget } from '../copy/ends.ts'
import { runWork } from '../sql/database.ts'
import { danglingReferenceError, StoreError } from '../store-error.ts'
import { COPIED_TABLES } from '../tables.ts'
import { openProfileTable } from './content.ts'
import { connect, type Database } from './database.ts'
import { SqlError } from './errors.ts'
import { checkMigrated, LATEST, migrate, readSchema } from './migrate.ts'
import { DIALECT } from './sql.ts'

/** To count the signups of years or to analyze a table may take minutes. */
const timeoutMs = 600_000

/** Opens either end of a copy. Nothing is changed before `begin`. */
export function openPostgresCopy(url: string): CopyTarget {
  const database = connect(url, { timeoutMs })
  const { place, read, notify, close } = database

  return createCopyTarget({
    location: place,
    dialect: DIALECT,
    revisions:
      "(SELECT string_agg(concat_ws('.', kind, changes, mark), ' ' ORDER BY kind) FROM partner_api.revision)",
    lockRevisions: 'SELECT kind FROM partner_api.revision ORDER BY kind FOR UPDATE',
    read: (sql, parameters) => withStoreErrors(place, () => read<never>(sql, parameters)),

    transaction: (work) =>
      withStoreErrors(place, () => database.transaction(async (query) => void await runWork(work(), query))),
    openProfileTable,

    hasStore: () => withStoreErrors(place, () => hasStore(database)),
    prepare: () => withStoreErrors(place, () => migrate(database, undefined)),
    notify,

    async refreshStatistics() {
      // Without new statistics, the server plans with the old table sizes. A role that may not update them can still copy.
      for (const table of ['listing', 'tally', ...Object.values(COPIED_TABLES).map(({ name }) => name)]) {
        await database.write(`VACUUM (ANALYZE) partner_api.${table}`).catch(() => undefined)
      }
    },

    close,
  })
}

async function hasStore(database: Database): Promise<boolean> {
  const { version } = await readSchema(database.read, database.place)
  if (version === 0) return false
  await checkMigrated(database)
  if (version <= LATEST) return true
  // Older programs may serve it, but do not know everything that has to be copied.
  throw new StoreError(
    'newer_schema',
    `The store ${database.place} was migrated by a newer program: copy it with that one.`,
  )
}

/** @throws {StoreError} for what the server answers to a statement. */
async function withStoreErrors<T>(place: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof SqlError)) throw error
    switch (error.code) {
      case '23503': // foreign_key_violation
        throw danglingReferenceError(place, error)
      case '23505': { // unique_violation: the rows of a copy are unique, so another one has written them meanwhile.
        const detail = `Another copy into the store ${place} is under way: repeat this one when it has ended.`
        throw new StoreError('refused', detail, { cause: error })
      }
      default:
        throw new StoreError('unreachable', `The store ${place} cannot be copied: ${error.message}.`, {
          cause: error,
        })
    }
  }
}
