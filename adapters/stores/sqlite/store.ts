/** A store in one SQLite file, which any number of processes on one machine can open. */
import { type Clock, clockOf } from '../../../core/lib/clock.ts'
import { assertKind, assertOptions, type OptionKinds } from '../../../core/lib/options.ts'
import type { ModuleDefinition } from '../../../core/model.ts'
import { StoreError, type StoreErrorCode } from '../../../core/ports/store-error.ts'
import type { Store, StoreSettings } from '../../../core/ports/store.ts'
import { withChangeListeners } from '../sql/change-listeners.ts'
import { readSettings, requireKeyPrefix } from '../sql/schema.ts'
import { createSharedMembers } from '../sql/store.ts'
import { retryWhileBusy } from './busy-retry.ts'
import { createContent } from './content.ts'
import { openDatabase, type SqliteDatabase, withReader } from './database.ts'
import { createDirectory } from './directory.ts'
import { unusableError } from './errors.ts'
import { createLists } from './lists.ts'
import { checkSchema, configure, migrate } from './migrate.ts'
import { cleanUpAbandonedImport } from './rebuild.ts'
import { createRevisions, type Revisions } from './revisions.ts'
import { createServersFile } from './servers.ts'
import { createSignups } from './signups.ts'
import { createQuery, createSqlDatabase } from './sql-database.ts'

export { StoreError, type StoreErrorCode }

/** How a file is opened. */
export interface SqliteStoreOptions {
  /** Create the file if it is missing. Default true. */
  readonly create?: boolean
  /** Bring the schema up to date. Default true; otherwise an outdated schema is an error. */
  readonly migrate?: boolean
  /** Change nothing in the file, which must exist. Default false. */
  readonly readOnly?: boolean
  /**
   * First part of every key: 2–10 lower-case letters or digits, a letter first. `spk` for a new store. Can be changed
   * until the store holds a key.
   */
  readonly keyPrefix?: string
  /**
   * Whether limits are shared with all other stores that open the file so, in this process and in others.
   * By default, which costs less, only those with windows of an hour or longer are. Quotas of partners
   * follow the default, at least.
   */
  readonly shareLimits?: boolean
  /**
   * Milliseconds since the epoch, in place of this machine's clock: changes and services on this store follow it. For
   * tests.
   */
  readonly clock?: () => number
}

const optionKinds: OptionKinds<SqliteStoreOptions> = {
  create: 'true or false',
  migrate: 'true or false',
  readOnly: 'true or false',
  keyPrefix: 'a text',
  shareLimits: 'true or false',
  clock: 'a function',
}

/**
 * Opens a store. Most of its methods are synchronous, as SQLite answers in microseconds. An administrative change waits
 * up to five seconds for another process that is writing; writes on behalf of partners wait without blocking.
 *
 * @param file Path of the file, or `:memory:` for a store that ends with its process.
 * @throws {StoreError} `unreachable` when the file cannot be opened or read, `newer_schema` when a newer program
 * has migrated it, `refused` for a URL, when it belongs to another program, when a copy into it was not finished
 * or when the key prefix cannot be changed; without `migrate` also `missing` when it is empty, and `refused`
 * when its schema is older.
 */
export async function openSqliteStore(file: string, options: SqliteStoreOptions = {}): Promise<Store> {
  assertKind('openSqliteStore: the file', file, 'a text')
  assertOptions('openSqliteStore', options, optionKinds)
  // As a path, `memory:` or the value of PARTNER_API_STORE would be a new, empty file.
  if (/^(?:sqlite|memory|file|postgres(?:ql)?):/.test(file)) {
    throw new StoreError('refused', "openSqliteStore takes the path of a file or ':memory:', and no URL.")
  }
  const { readOnly = false, create = !readOnly, keyPrefix, shareLimits } = options
  const clock = options.clock && clockOf({ clock: () => undefined, now: options.clock })
  const mayMigrate = !readOnly && (options.migrate ?? true)
  if (keyPrefix !== undefined) requireKeyPrefix(keyPrefix)
  const database = openDatabase(file, { create, readOnly })
  try {
    // Before the first write: the file may belong to another program.
    checkSchema(database, file, mayMigrate)
    // A command that lists a million keys reads most pages once.
    await configure(database, readOnly, mayMigrate ? 256 : 4)
    // Waits without blocking: a signal can end the program during the wait.
    if (!readOnly) await retryWhileBusy(() => migrate(database, file, keyPrefix))
    if (mayMigrate) cleanUpAbandonedImport(database)
    const revisions = createRevisions(database, file)
    const query = createQuery(database)
    const settings = await readSettings(
      file,
      query,
      (...change) => database.transaction(() => query(...change)),
      keyPrefix,
    )
    const store = assemble(database, file, revisions, settings, clock)
    const { replicas, quotas, close } = createServersFile(file, revisions, shareLimits, clock)
    return withChangeListeners({
      ...store,
      replicas,
      quotas,
      close() {
        close()
        database.close()
      },
    })
  } catch (error) {
    database.close()
    if (error instanceof StoreError) throw error
    throw unusableError(file, 'opened', error)
  }
}

function assemble(
  database: SqliteDatabase,
  file: string,
  revisions: Revisions,
  settings: StoreSettings,
  clock: Clock | undefined,
): Omit<Store, 'onChange' | 'replicas' | 'quotas'> {
  const sql = createSqlDatabase(database, revisions, clock)
  const shared = createSharedMembers(sql)
  const lists = createLists(sql)
  return {
    ...shared,
    knownModules: shared.listModules as () => readonly ModuleDefinition[],
    settings,
    // Processes on one machine have one clock.
    clock: () => undefined,
    now: clock?.now,
    close: database.close,
    check: createCheck(database, file, revisions),
    revision: revisions.current,
    directoryRevision: () => revisions.current().content,
    ...lists,
    listKeys: (filter, ...page) => lists.listKeys(clock ? { now: clock.now(), ...filter } : filter, ...page),
    ...createDirectory(database),
    ...createContent(database, revisions, sql),
    ...createSignups(database, sql),
  }
}

/**
 * Checks that the file can be read, in some 150 microseconds. It takes a connection of its own: the open one answers
 * from cached pages, whatever has happened to the file.
 */
function createCheck(database: SqliteDatabase, file: string, revisions: Revisions): () => void {
  return () => {
    database.checkFileIdentity()
    revisions.current()
    if (file === ':memory:') return
    withReader(file, (connection) => connection.statement('SELECT id FROM store').get())
  }
}
