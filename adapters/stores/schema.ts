/** Schema versions of the SQL stores: the part of migrating them that both kinds share. */
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
  /** Frozen text: every store has executed the same SQL. */
  readonly sql: string
}

export function toMigrationStatus(current: number, migrations: readonly Migration[]): MigrationStatus {
  return {
    current,
    latest: migrations.length,
    pending: migrations.slice(current).map(({ name }) => name),
  }
}

export function migrationRequiredError(place: string, { current, latest }: MigrationStatus): StoreError {
  return new StoreError(
    'refused',
    `The store ${place} has schema version ${current} and this program needs ${latest}: migrate it first.`,
  )
}

/** @param needed Version that a program must know to use the store. */
export function newerSchemaError(place: string, needed: number, known: number): StoreError {
  return new StoreError(
    'newer_schema',
    `The store ${place} was migrated for programs that know schema version ${needed}, and this program knows ` +
      `${known} at most: use the newer program.`,
  )
}
