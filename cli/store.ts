import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import process from 'node:process'
import type { MigrationStatus } from '../adapters/stores/schema.ts'
import { createClock } from '../core/lib/time.ts'
import type { Store } from '../core/ports/store.ts'
import { CliError, toCliError, usageError } from './errors.ts'
import { currentUser, type Invocation, parseStoreUrl, type StoreAddress } from './invocation.ts'
import { printNote } from './output/print.ts'

/** How a command wants its store. */
export interface StoreOptions {
  /** Make the store, and bring its schema up to this version's, when it is not so yet. */
  readonly create?: boolean
  /** Show an empty store where there is none, and make none. What is written to it is lost. */
  readonly emptyWhenMissing?: boolean
}

/** Runs a command on the store and closes it, whatever happens. */
export async function withStore<T>(
  invocation: Invocation,
  storeOptions: StoreOptions,
  command: (store: Store) => Promise<T>,
): Promise<T> {
  const address = parseStoreUrl(invocation.storeUrl)
  if (address.kind === 'memory') printNote('warning: a memory: store is empty and ends with this command.')
  const store = await openStore(address, storeOptions)
  try {
    return await command(store)
  } finally {
    await store.close()
  }
}

async function openStore(
  address: StoreAddress,
  { create = false, emptyWhenMissing = false }: StoreOptions,
): Promise<Store> {
  try {
    if (address.kind !== 'memory') return await openDurableStore(address, { create })
  } catch (error) {
    const cliError = await toCliError(error)
    if (cliError.code !== 'store_missing' || !emptyWhenMissing) throw error
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
 * @throws {CliError} `store_missing` when there is no file and `create` is not set.
 * @throws {StoreError} as the stores do.
 */
export async function openDurableStore(
  address: Exclude<StoreAddress, { readonly kind: 'memory' }>,
  { create, ...settings }: OpenOptions,
): Promise<Store> {
  if (address.kind === 'postgres') {
    await postgresPlace(address.url)
    const { openPostgresStore } = await import('../adapters/stores/postgres/store.ts')
    return await openPostgresStore(address.url, { migrate: create, ...settings })
  }
  if (!create) requireFile(address.file)
  silenceSqliteWarning()
  const { openSqliteStore } = await import('../adapters/stores/sqlite/store.ts')
  return await openSqliteFile(
    address.file,
    () => openSqliteStore(address.file, { create, migrate: create, ...settings }),
  )
}

/** Whether there is nothing yet where the store should be. */
export async function isMissingStore(address: StoreAddress): Promise<boolean> {
  if (address.kind === 'memory') return false
  try {
    await schemaStatus(address)
    return false
  } catch (error) {
    if ((await toCliError(error)).code === 'store_missing') return true
    throw error
  }
}

/** Where the schema of a store stands. @throws {CliError} `store_missing` when there is none. */
export async function schemaStatus(
  address: Exclude<StoreAddress, { readonly kind: 'memory' }>,
): Promise<MigrationStatus> {
  if (address.kind === 'postgres') {
    const place = await postgresPlace(address.url)
    const { migrationStatus } = await import('../adapters/stores/postgres/migrate.ts')
    const schema = await migrationStatus(address.url)
    if (schema.current === 0) throw storeMissingError(place)
    return schema
  }
  requireFile(address.file)
  silenceSqliteWarning()
  const { migrationStatus } = await import('../adapters/stores/sqlite/migrate.ts')
  return await openSqliteFile(address.file, () => migrationStatus(address.file))
}

/** Where a store is, in words that hold no password. */
export async function describeStore(address: StoreAddress): Promise<string> {
  if (address.kind === 'postgres') return await postgresPlace(address.url)
  return address.kind === 'sqlite' ? resolve(address.file) : 'memory:'
}

/**
 * Where a Postgres store is, in words that hold no password.
 *
 * @throws {CliError} exit code 2 for an address that means nothing.
 */
async function postgresPlace(url: string): Promise<string> {
  const { parseUrl } = await import('../adapters/stores/postgres/url.ts')
  try {
    return parseUrl(url, { environment: process.env, user: currentUser() }).place
  } catch (error) {
    throw usageError((await toCliError(error)).message)
  }
}

function requireFile(file: string): void {
  if (!existsSync(file)) throw storeMissingError(file)
}

function storeMissingError(place: string): CliError {
  return new CliError(3, 'store_missing', `There is no store at ${place}. To make one: partner-api migrate`)
}

/** Node 22 and 24 call node:sqlite experimental on standard error, once in every command. */
export function silenceSqliteWarning(): void {
  const emitWarning = process.emitWarning as (...args: unknown[]) => void
  process.emitWarning = (...args: unknown[]) => {
    if (args[1] === 'ExperimentalWarning' && String(args[0]).startsWith('SQLite ')) return
    emitWarning.apply(process, args)
  }
}

/**
 * Opens the file of a store. SQLite says no more than that it could not, where somebody can see why.
 *
 * @throws {CliError} with what stands in the way, or what `open` throws.
 */
export async function openSqliteFile<T>(file: string, open: () => T | Promise<T>): Promise<T> {
  try {
    return await open()
  } catch (error) {
    const { exitCode, code } = await toCliError(error)
    const obstacle = code === 'store_unavailable' ? diagnoseFile(file) : undefined
    if (obstacle === undefined) throw error
    throw new CliError(exitCode, code, `The store ${file} cannot be used: ${obstacle}.`)
  }
}

/** Those of a store's files that accounts other than their owner can read or write. */
export function exposedFiles(file: string): string[] {
  // Windows has no such modes.
  if (process.platform === 'win32') return []
  return [file, `${file}-wal`, `${file}-shm`].filter((path) => {
    const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & 0o077) !== 0
  })
}

function diagnoseFile(file: string): string | undefined {
  const folder = dirname(file)
  const inFolder = accessError(folder, constants.W_OK | constants.X_OK)
  if (inFolder === 'ENOENT' || inFolder === 'ENOTDIR') return `there is no folder ${folder}`
  if (accessError(`${file}/.`, constants.F_OK) === undefined) return 'it is a folder'
  if (isForbidden(file, constants.R_OK)) return 'this account may not read it'
  if (isForbidden(file, constants.W_OK)) return 'this account may read but not write it'
  return inFolder && `this account may not write in ${folder}, where SQLite keeps more files`
}

function isForbidden(file: string, mode: number): boolean {
  return !['ENOENT', undefined].includes(accessError(file, mode))
}

/** What the system calls it that a path may not be used so. */
function accessError(path: string, mode: number): string | undefined {
  try {
    accessSync(path, mode)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
}
