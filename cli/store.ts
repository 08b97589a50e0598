import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import process from 'node:process'
import type { MigrationStatus } from '../adapters/stores/postgres/migrate.ts'
import { createClock } from '../core/clock.ts'
import type { Store } from '../core/ports.ts'
import { Failure, failureOf, usageFailure } from './failure.ts'
import { parseStoreUrl, type StoreAddress } from './input/store-address.ts'
import { currentUser, type Invocation } from './invocation.ts'
import { printNote } from './output/print.ts'
import { openFile } from './sqlite-file.ts'

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
    if (address.kind !== 'memory') return await open(address, { create })
  } catch (error) {
    const failure = await failureOf(error)
    if (failure.code !== 'store_missing' || !emptyWhenMissing) throw error
  }
  const { createMemoryStore } = await import('../adapters/stores/memory/store.ts')
  return createMemoryStore()
}

/** Milliseconds since the epoch, on the store's clock where machines share one. */
export function timeOf(store: Store): number {
  return createClock(() => store.clock?.()).now()
}

/** How a store outside of this process is opened. */
export interface OpenOptions {
  /** Make it when there is none, and bring its schema up to date. */
  readonly create: boolean
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
  { create, ...settled }: OpenOptions,
): Promise<Store> {
  if (address.kind === 'postgres') {
    await placeOf(address.url)
    const { openPostgresStore } = await import('../adapters/stores/postgres/store.ts')
    return await openPostgresStore(address.url, { migrate: create, ...settled })
  }
  if (!create) refuseMissing(address.file)
  silenceSqliteWarning()
  const { openSqliteStore } = await import('../adapters/stores/sqlite/store.ts')
  return await openFile(
    address.file,
    () => openSqliteStore(address.file, { create, migrate: create, ...settled }),
  )
}

/** Whether there is nothing yet where the store should be. */
export async function isMissingStore(address: StoreAddress): Promise<boolean> {
  if (address.kind === 'memory') return false
  try {
    await schemaOf(address)
    return false
  } catch (error) {
    if ((await failureOf(error)).code === 'store_missing') return true
    throw error
  }
}

/** Where the schema of a store stands. @throws {Failure} `store_missing` when there is none. */
export async function schemaOf(
  address: Exclude<StoreAddress, { readonly kind: 'memory' }>,
): Promise<MigrationStatus> {
  if (address.kind === 'postgres') {
    const place = await placeOf(address.url)
    const { migrationStatus } = await import('../adapters/stores/postgres/migrate.ts')
    const schema = await migrationStatus(address.url)
    if (schema.current === 0) throw storeMissing(place)
    return schema
  }
  refuseMissing(address.file)
  silenceSqliteWarning()
  const { migrationStatus } = await import('../adapters/stores/sqlite/migrate.ts')
  return await openFile(address.file, () => migrationStatus(address.file))
}

/** Where a store is, in words that hold no password. */
export async function describeStore(address: StoreAddress): Promise<string> {
  if (address.kind === 'postgres') return await placeOf(address.url)
  return address.kind === 'sqlite' ? resolve(address.file) : 'memory:'
}

/**
 * Where a Postgres store is, in words that hold no password.
 *
 * @throws {Failure} exit code 2 for an address that means nothing.
 */
async function placeOf(url: string): Promise<string> {
  const { parseAddress } = await import('../adapters/stores/postgres/connection/address.ts')
  try {
    return parseAddress(url, { environment: process.env, user: currentUser() }).place
  } catch (error) {
    throw usageFailure((await failureOf(error)).message)
  }
}

function refuseMissing(file: string): void {
  if (!existsSync(file)) throw storeMissing(file)
}

function storeMissing(place: string): Failure {
  return new Failure(3, 'store_missing', `There is no store at ${place}. To make one: partner-api migrate`)
}

/** Node 22 and 24 call node:sqlite experimental on standard error, once in every command. */
export function silenceSqliteWarning(): void {
  const emitWarning = process.emitWarning as (...args: unknown[]) => void
  process.emitWarning = (...args: unknown[]) => {
    if (args[1] === 'ExperimentalWarning' && String(args[0]).startsWith('SQLite ')) return
    emitWarning.apply(process, args)
  }
}
