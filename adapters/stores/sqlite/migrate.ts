import { StoreError } from '../../../core/ports/store-error.ts'
import { runWork } from '../sql/database.ts'
import { missingSettingsError } from '../sql/errors.ts'
import type { SqlValue } from '../sql/row-format.ts'
import {
  applyMigrations,
  checkMigrations,
  type Migration,
  type MigrationStatus,
  pendingMigrations,
  requireMigrated,
  type Schema,
  type SchemaDialect,
  toMigrationStatus,
} from '../sql/schema.ts'
import { retryWhileBusy } from './busy-retry.ts'
import { type SqliteDatabase, withReader } from './database.ts'
import { unusableError } from './errors.ts'
import * as store from './migrations/001-store.ts'
import { createQuery } from './sql-database.ts'

export const MIGRATIONS: readonly Migration[] = [store]

/** "papi", the application id of a store's file. */
const applicationId = 0x70617069

const dialect: SchemaDialect = {
  createMigrationTable: `
    CREATE TABLE migration (
      version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL, hash TEXT
    ) STRICT`,
  insertStore: 'INSERT INTO store (only, id, key_prefix, cursor_secret) VALUES (1, $1, $2, $3)',
}

/**
 * Reads the schema version of a file, and changes nothing.
 *
 * @throws {StoreError} `unreachable` when the file does not exist or is not a SQLite database, `refused` when it
 * belongs to another program.
 */
export function migrationStatus(file: string): MigrationStatus {
  return withReader(file, (database) => toMigrationStatus(readSchema(database, file), MIGRATIONS))
}

/**
 * Brings the schema up to date, and fails while another process holds the write lock. When several processes start
 * on one file, one of them migrates it.
 *
 * @param keyPrefix First part of the keys of a store that is created now.
 * @throws {StoreError} `newer_schema` when a newer program has migrated the file, `refused` when it belongs to another
 * program.
 */
export function migrate(
  database: SqliteDatabase,
  file: string,
  keyPrefix: string | undefined,
  migrations: readonly Migration[] = MIGRATIONS,
): void {
  // Most starts have nothing to migrate and need no write lock.
  const found = readSchema(database, file)
  if (found.version > 0 && readIdentity(database, file)[1] === 0) {
    database.exec(`PRAGMA application_id = ${applicationId}`)
  }
  if (pendingMigrations(file, found, migrations).length === 0) return
  database.transaction(() => {
    // Read again under the lock: another process may have migrated the file in between.
    const schema = readSchema(database, file)
    const pending = pendingMigrations(file, schema, migrations)
    runWork(applyMigrations(dialect, schema, pending, keyPrefix), createQuery(database))
  }, { wait: false })
}

/**
 * Checks that the schema is up to date or, if `mayMigrate`, that this program can migrate it. Changes nothing.
 *
 * @throws {StoreError} `missing` when the file is empty, `refused` when its schema is older;
 * otherwise as `migrate` does.
 */
export function checkSchema(database: SqliteDatabase, file: string, mayMigrate: boolean): void {
  const schema = readSchema(database, file)
  if (mayMigrate) pendingMigrations(file, schema, MIGRATIONS)
  else requireMigrated(file, schema, MIGRATIONS)
}

/** @throws {StoreError} as `migrationStatus` does. */
export function readSchema(database: SqliteDatabase, file: string): Schema {
  const [tables, id] = readIdentity(database, file)
  if (tables === 0) return { version: 0, servedFrom: 0 }
  if (id !== applicationId && !(id === 0 && hasMigrations(database))) {
    throw new StoreError('refused', `The file ${file} is the SQLite database of another program.`)
  }
  const rows = database.statement<[number, ...SqlValue[]]>('SELECT * FROM migration ORDER BY version').all()
  if (rows.length === 0) throw missingSettingsError(file)
  checkMigrations(file, rows, MIGRATIONS)
  const [version] = rows.at(-1)!
  return { version, servedFrom: version }
}

/** A file restored from `sqlite3 .dump` has the tables of a store, but no application id. */
function hasMigrations(database: SqliteDatabase): boolean {
  try {
    const first = database.statement<[string]>('SELECT name FROM migration, store ORDER BY version LIMIT 1')
      .get()
    return first?.[0] === store.name
  } catch {
    return false
  }
}

function readIdentity(database: SqliteDatabase, file: string): [tables: number, applicationId: number] {
  try {
    // The first statement that reads the file: it fails when the file is not a database.
    const [tables] = database.statement<[number]>('SELECT count(*) FROM sqlite_schema').get()!
    const [id] = database.statement<[number]>('PRAGMA application_id').get()!
    return [tables, id]
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw unusableError(file, 'read', error)
  }
}

/**
 * Configures a connection and, unless `readOnly`, switches the file to write-ahead logging.
 * @param cacheMiB Of pages, which only a large import or a large store fills.
 */
export async function configure(database: SqliteDatabase, readOnly = false, cacheMiB = 256): Promise<void> {
  // With write-ahead logging, readers and a writer do not wait for each other. Unlike every other statement, the switch
  // fails at once while another process has the file locked, for instance for the same switch.
  if (!readOnly) await retryWhileBusy(() => database.exec('PRAGMA journal_mode = WAL'))
  database.exec(`
    -- A change is on disk before it is acknowledged. NORMAL would lose the last changes in a power failure.
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    -- The file may come from anywhere: its schema must not call functions with effects.
    PRAGMA trusted_schema = OFF;
    -- Overwrites removed rows where that costs no further writes.
    PRAGMA secure_delete = FAST;
    -- Truncates the log that an import of a million profiles has written.
    PRAGMA journal_size_limit = 67108864;
    PRAGMA cache_size = ${-1024 * cacheMiB};
    -- Without memory mapping, reading a truncated file is an error and does not end the process.
    PRAGMA mmap_size = 0;`)
}
