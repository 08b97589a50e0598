/** A store in a Postgres database, which any number of processes can share. */
import { assertKind, assertOptions, type OptionKinds } from '../../../core/lib/options.ts'
import type { ModuleDefinition } from '../../../core/model.ts'
import { StoreError, type StoreErrorCode } from '../../../core/ports/store-error.ts'
import type { Store, StoreSettings } from '../../../core/ports/store.ts'
import { withChangeListeners } from '../sql/change-listeners.ts'
import { createQuotaStore } from '../sql/quotas.ts'
import { readSettings, requireKeyPrefix } from '../sql/schema.ts'
import { createSharedMembers } from '../sql/store.ts'
import type { PostgresQuery } from './connection.ts'
import { createContent } from './content.ts'
import { connect, type PostgresDatabase } from './database.ts'
import { createDirectory } from './directory.ts'
import { SqlError } from './errors.ts'
import { createLists } from './lists.ts'
import { batchKeyLookups, gatherLookUps } from './look-ups.ts'
import { checkMigrated, migrate } from './migrate.ts'
import { createReplicaRegistry } from './replicas.ts'
import { createRevisions, type Revisions } from './revisions.ts'
import { createSignups } from './signups.ts'
import { createSqlDatabase } from './sql-database.ts'

export { StoreError, type StoreErrorCode }

/** Options of `openPostgresStore`. */
export interface PostgresStoreOptions {
  /** Create the store if needed, and update its schema. Default true; with false, either is an error. */
  readonly migrate?: boolean
  /**
   * First part of every key: 2–10 lower-case letters or digits, a letter first; `spk` for a new store. It can be
   * changed as long as the store has no keys.
   */
  readonly keyPrefix?: string
  /**
   * Milliseconds, 20 or more, default 1,000, for a look-up. After half of it without a response, it is repeated on
   * another connection. Each statement of a search has a quarter of it.
   */
  readonly lookUpTimeoutMs?: number
  /**
   * Whether limits are shared with all other stores that open the database so, default true; otherwise they are counted
   * for each open store. Quotas of partners are always shared.
   */
  readonly shareLimits?: boolean
}

const optionKinds: OptionKinds<PostgresStoreOptions> = {
  migrate: 'true or false',
  keyPrefix: 'a text',
  lookUpTimeoutMs: 'a number',
  shareLimits: 'true or false',
}

/**
 * Opens a store. It is in the schema `partner_api` of the database.
 *
 * @param url `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?NAME=VALUE&…`, as for libpq, with
 * `pooler=transaction` for a pooler in transaction mode.
 * @throws {StoreError} `unreachable` when the database does not respond, `missing` when there is no store and
 * `migrate` is false, `newer_schema` when a newer program has migrated it beyond this one, `refused` when the URL
 * is malformed, the schema belongs to another program, it has to be migrated and `migrate` is false, a copy into it
 * was not finished, or it has keys with another prefix.
 */
export async function openPostgresStore(url: string, options: PostgresStoreOptions = {}): Promise<Store> {
  assertKind('openPostgresStore: the URL', url, 'a text')
  assertOptions('openPostgresStore', options, optionKinds)
  const { migrate: mayMigrate = true, keyPrefix, lookUpTimeoutMs, shareLimits = true } = options
  if (keyPrefix !== undefined) requireKeyPrefix(keyPrefix)
  const database = connect(url, lookUpTimeoutMs === undefined ? {} : { lookUpTimeoutMs })
  try {
    if (mayMigrate) await migrate(database, keyPrefix)
    else await checkMigrated(database)
    const revisions = createRevisions(database)
    // Rejects a store with an unfinished copy, whose settings are not final.
    await revisions.current(database.read)
    const change: PostgresQuery = (sql, parameters) =>
      database.transaction(async (query) => {
        // No key can be issued during this.
        await revisions.lock(query, 'facts')
        return await query(sql, parameters)
      })
    const store = assemble(
      database,
      revisions,
      await readSettings(database.location, database.read, change, keyPrefix),
      shareLimits,
    )
    await store.listModules()
    return withChangeListeners(store)
  } catch (error) {
    await database.close()
    if (!(error instanceof SqlError)) throw error
    throw new StoreError(
      'unreachable',
      `The store ${database.location} cannot be opened: ${error.message}.`,
      {
        cause: error,
      },
    )
  }
}

function assemble(
  database: PostgresDatabase,
  revisions: Revisions,
  settings: StoreSettings,
  shareLimits: boolean,
): Omit<Store, 'onChange'> {
  const sql = createSqlDatabase(database, revisions)
  const shared = createSharedMembers(sql)
  let modules: readonly ModuleDefinition[] = []
  return {
    ...shared,
    listModules: async () => modules = await shared.listModules(),
    knownModules: () => modules,
    settings,
    close: database.close,
    async check() {
      await revisions.current()
    },
    revision: () => revisions.current(),
    clock: revisions.clock,
    now: undefined,
    directoryRevision: async () => (await revisions.current()).content,
    findKey: batchKeyLookups(database, shared.findKey),
    ...createLists(sql),
    ...createDirectory(database),
    ...createContent(database, sql),
    ...createSignups(database, sql),
    replicas: createReplicaRegistry(database, sql, revisions),
    quotas: {
      sharesLimits: shareLimits,
      leastWindowSeconds: 1,
      ...createQuotaStore({
        ...sql,
        lookUpOne: (text) => gatherLookUps(database, text),
        commit: database.commit,
        asyncCommit: database.asyncCommit,
        pruneEvery: 1,
      }, 'quota_window'),
    },
  }
}
