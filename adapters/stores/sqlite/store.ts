/** A store in one SQLite file, which any number of processes on one machine may have open. */
import type { Store, StoreSettings } from '../../../core/ports/store.ts'
import { sha256 } from '../../digest.ts'
import { checkKeyPrefix, keyPrefixInUseError } from '../settings.ts'
import { StoreError } from '../store-error.ts'
import { createAuditLog } from './audit.ts'
import { cleanUpAbandonedImport } from './bulk-import-tables.ts'
import { createContentAdministration } from './content.ts'
import { type Database, errorMessage, openDatabase } from './database.ts'
import { createDirectory, createOffers } from './directory.ts'
import { checkKnown, checkMigrated, configure, migrate } from './migrate.ts'
import { createAdministration, createKeyLookup } from './partners-and-keys.ts'
import { createActivityList, createUsageCounts } from './reports.ts'
import { createRevisions, type Revisions } from './revisions.ts'
import { createSignups } from './signups.ts'

/** How a file is opened. */
export interface SqliteStoreOptions {
  /** Make the file when it is missing. Default true. */
  readonly create?: boolean
  /** Bring the schema up to date. Default true; otherwise a schema that is not is an error. */
  readonly migrate?: boolean
  /**
   * First part of every key: 2–10 lower-case letters or digits, a letter first; `spk` unless settled. Can be
   * changed until the store holds a key.
   */
  readonly keyPrefix?: string
}

/**
 * Opens a store. Its methods are synchronous, for SQLite answers in microseconds. A change waits up to five seconds for
 * another process that is writing; what a service writes for its partners waits aside and lets others be answered.
 *
 * @param file Path of the file, or `:memory:`.
 * @throws {StoreError} `unreachable` when the file cannot be opened or read, `newer_schema` when a newer program has
 * migrated it, `refused` when it belongs to another program, when a copy into it has not been finished, when it is to be
 * migrated and may not be, or when the key prefix cannot be what is asked for.
 */
export async function openSqliteStore(file: string, options: SqliteStoreOptions = {}): Promise<Store> {
  if (options.keyPrefix !== undefined) checkKeyPrefix(options.keyPrefix)
  const database = openDatabase(file, { create: options.create ?? true })
  try {
    // Before anything is written: the file may be another program's.
    if (options.migrate ?? true) checkKnown(database, file)
    else checkMigrated(database, file)
    await configure(database)
    migrate(database, file, options.keyPrefix)
    if (options.migrate ?? true) cleanUpAbandonedImport(database)
    const revisions = createRevisions(database, file)
    return assemble(database, file, revisions, readSettings(database, file, options.keyPrefix))
  } catch (error) {
    database.close()
    if (error instanceof StoreError) throw error
    throw new StoreError('unreachable', `The store ${file} cannot be opened: ${errorMessage(error)}.`, {
      cause: error,
    })
  }
}

function assemble(
  database: Database,
  file: string,
  revisions: Revisions,
  settings: StoreSettings,
): Store {
  const auditLog = createAuditLog(database)
  const signups = createSignups(database)
  return {
    settings,
    sha256,
    close: database.close,
    check: createCheck(database, file, revisions),
    revision: revisions.current,
    directoryRevision: () => revisions.current().content,
    ...createKeyLookup(database),
    ...createDirectory(database),
    ...createOffers(database),
    ...createAdministration(database, revisions, auditLog),
    ...createContentAdministration(database, revisions, auditLog),
    createSignup: signups.createSignup,
    listSignups: signups.listSignups,
    ...createUsageCounts(database),
    ...createActivityList(database, signups),
    listAudit: auditLog.listAudit,
    auditTail: auditLog.auditTail,
    auditHead: auditLog.auditHead,
    auditIntruders: auditLog.auditIntruders,
  }
}

/**
 * What was settled when the file was made, once `keyPrefix`, if any, has been settled anew.
 *
 * @throws {StoreError} `refused` when `keyPrefix` differs and there are keys that begin with the one before.
 */
function readSettings(database: Database, file: string, keyPrefix: string | undefined): StoreSettings {
  const read = database.statement<[keyPrefix: string, cursorSecret: string]>(
    'SELECT key_prefix, cursor_secret FROM store',
  )
  const [before, cursorSecret] = read.get()!
  if (keyPrefix === undefined || keyPrefix === before) return { keyPrefix: before, cursorSecret }
  const update = database.statement(
    'UPDATE store SET key_prefix = ?1 WHERE NOT EXISTS (SELECT 1 FROM partner_key)',
  )
  if (database.transaction(() => update.run(keyPrefix)) > 0) return { keyPrefix, cursorSecret }
  throw keyPrefixInUseError(file, before, keyPrefix)
}

/**
 * A look at whether the file can be read now, some 150 microseconds long. It takes a connection of its own: the one
 * that is open answers from pages that it has read before, whatever became of the file.
 */
function createCheck(database: Database, file: string, revisions: Revisions): () => void {
  return () => {
    database.checkFileIdentity()
    revisions.current()
    if (file === ':memory:') return
    const connection = openDatabase(file, { create: false, readOnly: true })
    try {
      connection.statement('SELECT id FROM store').get()
    } finally {
      connection.close()
    }
  }
}
