/** What stores share about being created and migrated: settings and schema versions. */
import { KEY_PREFIX_PATTERN } from '../../core/keys/format.ts'
import type { StoreSettings } from '../../core/ports/store.ts'
import { sha256 } from '../digest.ts'
import { StoreError } from './store-error.ts'

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

export function toMigrationStatus(current: number, migrations: readonly Migration[]): MigrationStatus {
  return {
    current,
    latest: migrations.length,
    pending: migrations.slice(current).map(({ name }) => name),
  }
}

/**
 * Checks that the migrations of a store are those of this program.
 *
 * @param rows Of its table of migrations, whose columns are version, name, applied_at and hash. One that was created
 * before 0.1.0 has no hash.
 * @throws {StoreError} `refused`
 */
export function checkMigrations(
  place: string,
  rows: readonly (readonly unknown[])[],
  migrations: readonly Migration[],
): void {
  const changed = migrations.find(({ sql }, index) =>
    rows.some(([version, , , hash]) => version === index + 1 && hash !== sha256(sql))
  )
  if (changed === undefined) return
  throw new StoreError(
    'refused',
    `The store ${place} was created by another build of this program, whose migration ${changed.name} differs: use ` +
      'that build, or fill a new store as "Upgrade a checkout" in docs/upgrade.md describes.',
  )
}

export function migrationRequiredError(place: string, { current, latest }: MigrationStatus): StoreError {
  return new StoreError(
    'refused',
    `The store ${place} has schema version ${current} and this program needs ${latest}: migrate it first.`,
  )
}

/**
 * The migrations that a store lacks.
 *
 * @param needed Version that a program must know to use the store.
 * @throws {StoreError} `newer_schema`
 */
export function pendingMigrations<M>(
  place: string,
  version: number,
  needed: number,
  migrations: readonly M[],
): readonly M[] {
  if (needed <= migrations.length) return migrations.slice(version)
  throw newerSchemaError(place, needed, migrations.length)
}

export function newerSchemaError(place: string, needed: number, known: number): StoreError {
  return new StoreError(
    'newer_schema',
    `The store ${place} was migrated for programs that know schema version ${needed}, and this program knows ` +
      `${known} at most: use the newer program.`,
  )
}

/**
 * @returns The prefix: 2–10 lower-case letters or digits, a letter first.
 * @throws {StoreError} `refused` for any other text.
 */
export function checkKeyPrefix(prefix: string): string {
  if (KEY_PREFIX_PATTERN.test(prefix)) return prefix
  const rule = '2 to 10 lower-case letters or digits with a letter first'
  throw new StoreError('refused', `The key prefix ${JSON.stringify(prefix)} is not ${rule}.`)
}

export function keyPrefixInUseError(place: string, from: string, to: string): StoreError {
  const reason = `it holds keys that begin with ${from}`
  return new StoreError('refused', `The key prefix of ${place} cannot become ${to}: ${reason}.`)
}

/** The settings of a new store, with a cursor secret of 256 random bits. */
export function newSettings(keyPrefix: string = 'spk'): StoreSettings {
  return { keyPrefix: checkKeyPrefix(keyPrefix), cursorSecret: randomHex(32) }
}

/** Random bytes from the CSPRNG in lower-case hexadecimal, two digits each. */
export function randomHex(bytes: number): string {
  const values = crypto.getRandomValues(new Uint8Array(bytes))
  return Array.from(values, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
