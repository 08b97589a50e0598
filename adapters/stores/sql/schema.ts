/** Creating and migrating a store: its settings and the versions of its schema. */
import { KEY_PREFIX_PATTERN } from '../../../core/keys/format.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import type { StoreSettings } from '../../../core/ports/store.ts'
import { sha256 } from '../../digest.ts'
import { query, type SqlQuery, type Work } from './database.ts'

/** The schema of a store compared with the one this program needs. */
export interface MigrationStatus {
  /** Version of the store's schema; 0 when there is no store yet. */
  readonly current: number
  /** Version that this program needs. */
  readonly latest: number
  /** Names of the migrations still to be applied, in order. */
  readonly pending: readonly string[]
}

/** A step of the schema. Its version is its place in the list of migrations, from 1. */
export interface Migration {
  readonly name: string
  /** Frozen: every store has executed the same SQL, and has its hash. A change of the schema is another migration. */
  readonly sql: string
}

export interface Schema {
  /** 0 without tables. */
  readonly version: number
  /** The oldest version of programs that may use it. */
  readonly servedFrom: number
}

export function toMigrationStatus({ version }: Schema, migrations: readonly Migration[]): MigrationStatus {
  const pending = migrations.slice(version).map(({ name }) => name)
  return { current: version, latest: migrations.length, pending }
}

/**
 * Checks that the migrations of a store are those of this program.
 *
 * @param rows Of its table of migrations, whose columns are version, name, applied_at and hash. One that was created
 * before 0.1.0 has no hash.
 * @throws {StoreError} `refused`
 */
export function checkMigrations(
  location: string,
  rows: readonly (readonly unknown[])[],
  migrations: readonly Migration[],
): void {
  const changed = migrations.find(({ sql }, index) =>
    rows.some(([version, , , hash]) => version === index + 1 && hash !== sha256(sql))
  )
  if (changed === undefined) return
  throw new StoreError(
    'refused',
    `The store ${location} was created by another build of this program, whose migration ${changed.name} differs: use ` +
      'that build, or fill a new store as "Upgrade a checkout" in docs/upgrade.md describes.',
  )
}

/** The migrations that a store lacks. @throws {StoreError} `newer_schema` */
export function pendingMigrations<M>(
  location: string,
  schema: Schema,
  migrations: readonly M[],
): readonly M[] {
  if (schema.servedFrom <= migrations.length) return migrations.slice(schema.version)
  throw newerSchemaError(location, schema.servedFrom, migrations.length)
}

/** @throws {StoreError} `missing` without a store, `refused` when it has to be migrated, `newer_schema`. */
export function requireMigrated(location: string, schema: Schema, migrations: readonly Migration[]): void {
  if (pendingMigrations(location, schema, migrations).length === 0) return
  if (schema.version === 0) {
    const remedy = { purpose: 'To create one', command: 'migrate', args: [] }
    throw new StoreError('missing', `There is no store at ${location}.`, { remedy })
  }
  const versions = `has schema version ${schema.version} and this program needs ${migrations.length}`
  throw new StoreError('refused', `The store ${location} ${versions}: migrate it first.`)
}

/** The statements of a kind of store. */
export interface SchemaDialect {
  readonly createMigrationTable: string
  /** Blocks changes, which then check whether they may still be made. */
  readonly lock?: string
  /** `$1` to `$3` are the id, the key prefix and the secret of cursors. */
  readonly insertStore: string
  /** The statement after the last migration; `$1` is the oldest version of programs that may use the schema. */
  readonly finish?: string
}

/** Brings a schema up to date, in one transaction. @param keyPrefix For a new store. */
export function* applyMigrations(
  { createMigrationTable, lock, insertStore, finish }: SchemaDialect,
  { version }: Schema,
  pending: readonly (Migration & { readonly servedFrom?: number })[],
  keyPrefix: string | undefined,
): Work<void> {
  if (pending.length === 0) return
  if (version === 0) yield* query(createMigrationTable)
  for (const [index, { name, sql }] of pending.entries()) {
    // First: of several programs, the others fail here.
    yield* query(
      'INSERT INTO partner_api.migration (version, name, applied_at, hash) VALUES ($1, $2, $3, $4)',
      [version + index + 1, name, Date.now(), sha256(sql)],
    )
    if (index === 0 && version > 0 && lock !== undefined) yield* query(lock)
    // Statements end with a semicolon at the end of a line. Compatible servers may take only one at a time.
    for (const statement of sql.split(/;[ \t]*$/m)) if (statement.trim() !== '') yield* query(statement)
  }
  const { keyPrefix: prefix, cursorSecret } = newSettings(keyPrefix)
  if (version === 0) yield* query(insertStore, [randomHex(8), prefix, cursorSecret])
  if (finish !== undefined) yield* query(finish, [pending.at(-1)!.servedFrom ?? 0])
}

export function newerSchemaError(location: string, needed: number, known: number): StoreError {
  return new StoreError(
    'newer_schema',
    `The store ${location} was migrated for programs that know schema version ${needed}, and this program knows ` +
      `${known} at most: use the newer program.`,
  )
}

/**
 * @returns The prefix: 2–10 lower-case letters or digits, a letter first.
 * @throws {StoreError} `refused` for any other text.
 */
export function requireKeyPrefix(prefix: string): string {
  if (KEY_PREFIX_PATTERN.test(prefix)) return prefix
  const rule = '2 to 10 lower-case letters or digits with a letter first'
  throw new StoreError('refused', `The key prefix ${JSON.stringify(prefix)} is not ${rule}.`)
}

/**
 * Reads the settings, after changing the key prefix if another one is requested.
 *
 * @param change Runs a statement in a transaction during which no key can be issued.
 * @throws {StoreError} `refused` when there are keys.
 */
export async function readSettings(
  location: string,
  read: SqlQuery,
  change: SqlQuery,
  keyPrefix: string | undefined,
): Promise<StoreSettings> {
  const [row] = await read<[keyPrefix: string, cursorSecret: string]>(
    'SELECT key_prefix, cursor_secret FROM partner_api.store',
  )
  const [before, cursorSecret] = row!
  if (keyPrefix === undefined || keyPrefix === before) return { keyPrefix: before, cursorSecret }
  const changed = await change(
    `UPDATE partner_api.store SET key_prefix = $1
    WHERE NOT EXISTS (SELECT 1 FROM partner_api.partner_key) RETURNING id`,
    [keyPrefix],
  )
  if (changed.length > 0) return { keyPrefix, cursorSecret }
  const reason = `it holds keys that begin with ${before}`
  throw new StoreError('refused', `The key prefix of ${location} cannot become ${keyPrefix}: ${reason}.`)
}

/** The settings of a new store, with a cursor secret of 256 random bits. */
export function newSettings(keyPrefix: string = 'spk'): StoreSettings {
  return { keyPrefix: requireKeyPrefix(keyPrefix), cursorSecret: randomHex(32) }
}

/** Random bytes from the CSPRNG in lower-case hexadecimal, two digits each. */
export function randomHex(bytes: number): string {
  const values = crypto.getRandomValues(new Uint8Array(bytes))
  return Array.from(values, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
