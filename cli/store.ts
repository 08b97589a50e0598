import { existsSync } from 'node:fs'
import process from 'node:process'
import type { Store } from '../core/ports.ts'
import { Failure, usageFailure } from './failure.ts'
import { parseStoreUrl, type StoreAddress } from './input/store-address.ts'
import type { Invocation } from './invocation.ts'
import { printNote } from './output/print.ts'
import { failureOf } from './reasons.ts'

/** How a command wants its store. */
export interface Opening {
  /** Make the store, and bring its schema up to this version's, when it is not so yet. */
  readonly create?: boolean
  /** Show an empty store where there is none, and make none. What is written to it is lost. */
  readonly emptyWhenMissing?: boolean
}

/** Runs a command on the store and closes it, whatever happens. */
export async function withStore<T>(
  invocation: Invocation,
  opening: Opening,
  command: (store: Store) => Promise<T>,
): Promise<T> {
  const address = parseStoreUrl(invocation.storeUrl)
  if (address.kind === 'memory') printNote('warning: a memory: store is empty and ends with this command.')
  const store = await openStore(address, opening)
  try {
    return await command(store)
  } finally {
    await store.close()
  }
}

async function openStore(
  address: StoreAddress,
  { create = false, emptyWhenMissing = false }: Opening,
): Promise<Store> {
  try {
    if (address.kind !== 'memory') return await open(address, { create, migrate: create })
  } catch (error) {
    const failure = await failureOf(error)
    if (failure.code !== 'store_missing' || !emptyWhenMissing) throw error
  }
  const { createMemoryStore } = await import('../adapters/stores/memory/store.ts')
  return createMemoryStore()
}

/** How a store outside of this process is opened. */
export interface OpenOptions {
  /** Make it when there is none. */
  readonly create: boolean
  /** Bring its schema up to date. */
  readonly migrate: boolean
  /** First part of every key, when it is to be settled. */
  readonly keyPrefix?: string
}

/**
 * Opens a store. Only the code of its kind is loaded.
 *
 * @throws {Failure} `store_missing` when there is no file and `create` is not set.
 * @throws {StoreError} as the stores do.
 */
export async function open(
  address: Exclude<StoreAddress, { readonly kind: 'memory' }>,
  options: OpenOptions,
): Promise<Store> {
  if (address.kind === 'postgres') {
    throw usageFailure('PostgreSQL stores are not in this version of partner-api. Use sqlite:FILE.')
  }
  if (!options.create) refuseMissing(address.file)
  silenceSqliteWarning()
  const { openSqliteStore } = await import('../adapters/stores/sqlite/store.ts')
  return await openSqliteStore(address.file, options)
}

/** Whether there is nothing yet where the store should be. */
export async function isMissingStore(address: StoreAddress): Promise<boolean> {
  if (address.kind === 'sqlite') return !existsSync(address.file)
  return address.kind === 'postgres' && (await schemaOf(address)).current === 0
}

/** Where the schema of a store stands. */
export interface Schema {
  /** Its version; 0 when there is no store. */
  readonly current: number
  /** The version that this program makes. */
  readonly latest: number
  /** Names of the migrations still to be applied, in order. */
  readonly pending: readonly string[]
}

/** @throws {Failure} `store_missing` when there is no file. */
export async function schemaOf(
  address: Exclude<StoreAddress, { readonly kind: 'memory' }>,
): Promise<Schema> {
  if (address.kind === 'postgres') {
    const { migrationStatus } = await import('../adapters/stores/postgres/migrate.ts')
    return await migrationStatus(address.url)
  }
  refuseMissing(address.file)
  silenceSqliteWarning()
  const { migrationStatus } = await import('../adapters/stores/sqlite/migrate.ts')
  return migrationStatus(address.file)
}

function refuseMissing(file: string): void {
  if (existsSync(file)) return
  throw new Failure(3, 'store_missing', `There is no store at ${file}. To make one: partner-api migrate`)
}

/** Node 22 and 24 call node:sqlite experimental on standard error, once in every command. */
export function silenceSqliteWarning(): void {
  const emitWarning = process.emitWarning as (...args: unknown[]) => void
  process.emitWarning = (...args: unknown[]) => {
    if (args[1] === 'ExperimentalWarning' && String(args[0]).startsWith('SQLite ')) return
    emitWarning.apply(process, args)
  }
}
