import { StoreError } from '../../../core/ports/store-error.ts'
import type { CopyDatabase } from '../sql/copy.ts'
import { runWork } from '../sql/database.ts'
import { danglingReferenceError } from '../sql/errors.ts'
import { COPIED_TABLES } from '../sql/tables.ts'
import { openProfileTable } from './content.ts'
import { connect, type PostgresDatabase } from './database.ts'
import { SqlError } from './errors.ts'
import { checkMigrated, LATEST, migrate, readSchema } from './migrate.ts'
import { inUseError, LIVE_REPLICAS } from './replicas.ts'
import { DIALECT } from './sql.ts'

/** Milliseconds of a statement: counting the signups of years, or analyzing a table, may take minutes. */
const timeoutMs = 600_000

/** A snapshot is idle while the other end is written. */
const setNoTimeouts =
  "SELECT set_config('idle_in_transaction_session_timeout', '0', true), set_config('statement_timeout', '0', true)"

const selectReplicas = `SELECT name FROM ${LIVE_REPLICAS} ORDER BY name`

/** Opens either end of a copy. Nothing is changed before it begins. */
export function openPostgresCopy(url: string): CopyDatabase {
  const database = connect(url, { timeoutMs })
  const { location, read, notify, close } = database

  return {
    location,
    dialect: DIALECT,
    takesNul: false,
    read: (sql, parameters) => withStoreErrors(location, () => read<never>(sql, parameters)),

    transaction: (work) =>
      withStoreErrors(
        location,
        () => database.transaction(async (query) => void await runWork(work(), query)),
      ),

    async snapshot(work) {
      let isBegun = false
      return await withStoreErrors(location, () =>
        database.transaction(async (query) => {
          // After a lost connection it would be repeated, on another state.
          if (isBegun) {
            throw new StoreError(
              'unreachable',
              `The connection to ${location} was lost during the copy: start again.`,
            )
          }
          isBegun = true
          await query(setNoTimeouts)
          return await work((sql, parameters) => query(sql, parameters) as Promise<never>)
        }, { readOnly: true }))
    },

    async checkUnused() {
      const names = (await withStoreErrors(location, () => read<[name: string]>(selectReplicas))).flat()
      if (names.length > 0) throw inUseError(location, names)
    },

    openProfileTable,
    hasStore: () => withStoreErrors(location, () => hasStore(database)),
    prepare: () => withStoreErrors(location, () => migrate(database, undefined)),
    notify,

    async refreshStatistics() {
      // Without new statistics, the server plans with the old table sizes. A role that may not
      // update them can still copy.
      for (const table of ['listing', 'tally', ...Object.values(COPIED_TABLES).map(({ name }) => name)]) {
        await database.write(`VACUUM (ANALYZE) partner_api.${table}`).catch(() => undefined)
      }
    },

    close,
  }
}

async function hasStore(database: PostgresDatabase): Promise<boolean> {
  const { version } = await readSchema(database.read, database.location)
  if (version === 0) return false
  await checkMigrated(database)
  if (version <= LATEST) return true
  // Older programs may serve it, but do not know everything that has to be copied.
  throw new StoreError(
    'newer_schema',
    `The store ${database.location} was migrated by a newer program: copy it with that one.`,
  )
}

/** @throws {StoreError} for what the server answers to a statement. */
async function withStoreErrors<T>(location: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof SqlError)) throw error
    // foreign_key_violation
    if (error.code === '23503') throw danglingReferenceError(location, error)
    throw new StoreError('unreachable', `The store ${location} cannot be copied: ${error.message}.`, {
      cause: error,
    })
  }
}
