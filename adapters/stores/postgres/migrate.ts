import { StoreError } from '../../../core/ports/store-error.ts'
import { runWork } from '../sql/database.ts'
import { missingSettingsError } from '../sql/errors.ts'
import {
  applyMigrations,
  checkMigrations,
  type Migration as SharedMigration,
  type MigrationStatus,
  pendingMigrations,
  requireMigrated,
  type Schema,
  type SchemaDialect,
  toMigrationStatus,
} from '../sql/schema.ts'
import type { PostgresQuery } from './connection.ts'
import { connect, type PostgresDatabase } from './database.ts'
import { SqlError } from './errors.ts'
import * as store from './migrations/001-store.ts'

/**
 * Reads the version of the schema.
 *
 * @throws {StoreError} `unreachable` when the database does not respond, `refused` when its schema `partner_api`
 * belongs to another program.
 */
export async function migrationStatus(url: string): Promise<MigrationStatus> {
  const database = connect(url)
  try {
    return toMigrationStatus(await readSchema(database.read, database.location), MIGRATIONS)
  } finally {
    await database.close()
  }
}

/**
 * Updates the schema, or creates it. Of several programs that start at once, one does.
 *
 * @param keyPrefix For a new store.
 * @throws {StoreError} `newer_schema` when a newer program has migrated the schema beyond this one, `refused` when the
 * schema belongs to another program or the database is not in UTF-8.
 */
export async function migrate(
  database: PostgresDatabase,
  keyPrefix: string | undefined,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const { read, location } = database
  let schema = await readOwnSchema(database)
  while (pendingMigrations(location, schema, migrations).length > 0) {
    try {
      return await database.transaction(async (query) => {
        // Again, within the transaction: another program may have migrated in between.
        const schema = await readSchema(query, location)
        const pending = pendingMigrations(location, schema, migrations)
        if (schema.version === 0) await createSchema(query, location)
        await runWork(applyMigrations(dialect, schema, pending, keyPrefix), query)
      })
    } catch (error) {
      const { version } = schema
      schema = await readSchema(read, location)
      // Whatever the error, another program that was migrating at the same time has caused it if it has made progress.
      if (schema.version === version) throw error
    }
  }
}

/**
 * @throws {StoreError} `missing` without a store, `refused` when it has to be migrated or the schema belongs to another
 * program, `newer_schema` as `migrate` does.
 */
export async function checkMigrated(database: PostgresDatabase): Promise<void> {
  requireMigrated(database.location, await readOwnSchema(database), MIGRATIONS)
}

/**
 * Reads the schema, and opens the connection of look-ups: a pooler refuses its settings, before anything is written.
 */
async function readOwnSchema({ read, lookUp, location }: PostgresDatabase): Promise<Schema> {
  const schema = await readSchema(read, location)
  await lookUp('SELECT 1')
  return schema
}

const dialect: SchemaDialect = {
  createMigrationTable: `
    CREATE TABLE partner_api.migration
      (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL, hash TEXT)`,
  lock: 'SELECT kind FROM partner_api.revision ORDER BY kind FOR UPDATE',
  insertStore: `
    WITH revisions AS (INSERT INTO partner_api.revision (kind, changes) VALUES ('facts', 0), ('content', 0))
    INSERT INTO partner_api.store (id, key_prefix, cursor_secret, audit_sequence, audit_hash, served_from)
    VALUES ($1, $2, $3, 0, '', 0)`,
  finish: 'UPDATE partner_api.store SET served_from = $1',
}

async function createSchema(query: PostgresQuery, location: string): Promise<void> {
  // Another encoding cannot store every signup, nor be searched for every word.
  const [row] = await query<[encoding: string]>("SELECT pg_catalog.current_setting('server_encoding')")
  const [encoding] = row!
  if (encoding !== 'UTF8') {
    throw new StoreError(
      'refused',
      `The database ${location} keeps text in ${encoding}, and a store needs one that was created with ENCODING 'UTF8'.`,
    )
  }
  // A role without the permission to create a schema may be given one; IF NOT EXISTS needs the permission, too.
  const schemas = await query("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'partner_api'")
  if (schemas.length === 0) await query('CREATE SCHEMA partner_api')
}

export async function readSchema(read: PostgresQuery, location: string): Promise<Schema> {
  const tables = await read<[name: string]>(
    "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'partner_api'",
  )
  if (tables.length === 0) return { version: 0, servedFrom: 0 }
  const names = new Set(tables.map(([name]) => name))
  if (!names.has('migration') || !names.has('store')) throw foreignSchemaError(location)
  try {
    const [row] = await read<[servedFrom: number]>('SELECT served_from FROM partner_api.store')
    const rows = await read<[version: number]>('SELECT * FROM partner_api.migration ORDER BY version')
    if (row === undefined) throw missingSettingsError(location)
    const last = rows.at(-1)
    if (last === undefined) throw foreignSchemaError(location)
    checkMigrations(location, rows, MIGRATIONS)
    return { version: last[0], servedFrom: row[0] }
  } catch (error) {
    if (error instanceof SqlError && error.code === '42703') throw foreignSchemaError(location)
    throw error
  }
}

function foreignSchemaError(location: string): StoreError {
  return new StoreError('refused', `The schema partner_api in ${location} belongs to another program.`)
}

export interface Migration extends SharedMigration {
  /** The oldest version of the schema whose programs may go on while replicas are replaced by those of this one. */
  readonly servedFrom: number
}

/** The version of each is its position, from 1. */
export const MIGRATIONS: readonly Migration[] = [store]

export const LATEST: number = MIGRATIONS.length
