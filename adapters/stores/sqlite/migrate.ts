import { setTimeout } from 'node:timers/promises'
import { newSettings, randomHex } from '../settings.ts'
import { StoreError } from '../store-error.ts'
import { BUSY_TIMEOUT_MS, type Database, errorMessage, isBusy, openDatabase } from './database.ts'
import * as factsAndContent from './migrations/001-facts-and-content.ts'
import * as signupsReportsAndAudit from './migrations/002-signups-reports-and-audit.ts'
import * as usageBatches from './migrations/003-usage-batches.ts'
import * as copies from './migrations/004-copies.ts'
import * as finishedCopies from './migrations/005-finished-copies.ts'
import * as lists from './migrations/006-lists.ts'
import * as endsAndPruning from './migrations/007-ends-and-pruning.ts'
import * as searchOrders from './migrations/008-search-orders.ts'

interface Migration {
  readonly name: string
  /** Frozen text: what it made in one store, it has made in every store. */
  readonly sql: string
}

/** In order; a migration's version is its place, from 1. */
const migrations: readonly Migration[] = [
  factsAndContent,
  signupsReportsAndAudit,
  usageBatches,
  copies,
  finishedCopies,
  lists,
  endsAndPruning,
  searchOrders,
]

const latest = migrations.length
const applicationId = 0x70617069

/** Where the schema of a store stands. */
export interface MigrationStatus {
  /** Version of the store's schema; 0 for an empty file. */
  readonly current: number
  /** Version that this program needs. */
  readonly latest: number
  /** Names of the migrations still to be applied, in order. */
  readonly pending: readonly string[]
}

/**
 * Says where the schema of a file stands, and changes nothing.
 *
 * @throws {StoreError} `unreachable` when there is no such file or it is no SQLite database, `refused` when it
 * belongs to another program.
 */
export function migrationStatus(file: string): MigrationStatus {
  const database = openDatabase(file, { create: false, readOnly: true })
  try {
    const current = schemaVersion(database, file)
    return { current, latest, pending: migrations.slice(current).map(({ name }) => name) }
  } finally {
    database.close()
  }
}

/**
 * Brings the schema up to date. Of several processes that start at once on one file, one does it and the others
 * find it done.
 *
 * @param keyPrefix First part of the keys of a store that is made now.
 * @throws {StoreError} `newer_schema` when a newer program has migrated the file, `refused` when it belongs to
 * another program.
 */
export function migrate(database: Database, file: string, keyPrefix: string | undefined): void {
  // Most starts find nothing to do, and then have no need of the write lock.
  const version = schemaVersion(database, file)
  if (version > 0 && readIdentity(database, file)[1] === 0) {
    database.exec(`PRAGMA application_id = ${applicationId}`)
  }
  if (pendingAfter(version, file).length === 0) return
  database.transaction(() => {
    // Read again under the lock: another process may have been here in between.
    const current = schemaVersion(database, file)
    for (const [index, { name, sql }] of pendingAfter(current, file).entries()) {
      recordMigration(database, current + index + 1, name)
      database.exec(sql)
    }
    if (current === 0) insertSettings(database, keyPrefix)
  })
}

/**
 * Checks that the file is empty or a store that this program knows, and changes nothing.
 *
 * @throws {StoreError} as `migrate` does.
 */
export function checkKnown(database: Database, file: string): void {
  pendingAfter(schemaVersion(database, file), file)
}

/**
 * Checks that there is nothing to migrate.
 *
 * @throws {StoreError} `refused` when there is, `newer_schema` when a newer program has migrated the file.
 */
export function checkMigrated(database: Database, file: string): void {
  const current = schemaVersion(database, file)
  if (pendingAfter(current, file).length === 0) return
  throw new StoreError(
    'refused',
    `The store ${file} has schema version ${current} and this program needs ${latest}: migrate it first.`,
  )
}

function pendingAfter(current: number, file: string): readonly Migration[] {
  if (current <= latest) return migrations.slice(current)
  throw new StoreError(
    'newer_schema',
    `The store ${file} has schema version ${current} and this program knows ${latest} at most: a newer ` +
      'program has migrated it, and this one would not understand what it holds.',
  )
}

/** The version of the schema of a file, 0 when it is empty. @throws {StoreError} as `migrationStatus` does. */
export function schemaVersion(database: Database, file: string): number {
  const [tables, id] = readIdentity(database, file)
  if (tables === 0) return 0
  if (id !== applicationId && !(id === 0 && holdsStore(database))) {
    throw new StoreError('refused', `The file ${file} is the SQLite database of another program.`)
  }
  return database.statement<[number]>('SELECT max(version) FROM migration').get()![0]
}

/** Whether the tables are those of a store. A file restored from `sqlite3 .dump` has them, but no application id. */
function holdsStore(database: Database): boolean {
  try {
    const names = database.statement<[string]>('SELECT name FROM migration, store ORDER BY version').all()
    return names.length > 0 &&
      names.slice(0, latest).every(([name], index) => name === migrations[index]!.name)
  } catch {
    return false
  }
}

function readIdentity(database: Database, file: string): [tables: number, applicationId: number] {
  try {
    // The first statement that reads the file: the one that fails when it is no database.
    const [tables] = database.statement<[number]>('SELECT count(*) FROM sqlite_schema').get()!
    const [id] = database.statement<[number]>('PRAGMA application_id').get()!
    return [tables, id]
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw new StoreError('unreachable', `The store ${file} cannot be read: ${errorMessage(error)}.`, {
      cause: error,
    })
  }
}

function recordMigration(database: Database, version: number, name: string): void {
  database.exec(`
    CREATE TABLE IF NOT EXISTS migration (
      version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL
    ) STRICT`)
  database.statement('INSERT INTO migration VALUES (?1, ?2, ?3)').run(version, name, Date.now())
}

function insertSettings(database: Database, keyPrefix: string | undefined): void {
  const settings = newSettings(keyPrefix)
  database.statement('INSERT INTO store (only, id, key_prefix, cursor_secret) VALUES (1, ?1, ?2, ?3)')
    .run(randomHex(8), settings.keyPrefix, settings.cursorSecret)
}

/** Sets what a connection needs, and the one thing that a file keeps: write-ahead logging. */
export async function configure(database: Database): Promise<void> {
  await enableWriteAheadLog(database)
  database.exec(`
    -- A change is on the disk before it is acknowledged. NORMAL would lose the last ones with the power.
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    -- The file may come from anywhere: its schema is not to call functions with effects.
    PRAGMA trusted_schema = OFF;
    -- What an import of a million profiles has written to the log is given back when it has been moved to the file.
    PRAGMA journal_size_limit = 67108864;
    -- 256 MiB of pages at most, which only a large import or a large store fills.
    PRAGMA cache_size = -262144;
    -- Nothing of the file is mapped: reading what was mapped and then cut off ends the process, where reading the file
    -- is an error.
    PRAGMA mmap_size = 0;`)
}

/**
 * Readers and a writer then do not wait for each other. Unlike every other statement, the switch fails at once
 * while another process has the file locked, for instance to do the same.
 */
async function enableWriteAheadLog(database: Database): Promise<void> {
  const deadline = Date.now() + BUSY_TIMEOUT_MS
  for (;;) {
    try {
      database.exec('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      if (!isBusy(error) || Date.now() > deadline) throw error
      await setTimeout(5)
    }
  }
}
