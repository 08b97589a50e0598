import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import process from 'node:process'
import type { MigrationStatus } from '../../adapters/stores/sql/schema.ts'
import { readModules } from '../../core/admin/apply.ts'
import { type Modules, modulesWith } from '../../core/model.ts'
import { clockOf } from '../../core/lib/clock.ts'
import type { Store } from '../../core/ports/store.ts'
import type { KeyedRoute, Route } from '../../core/routes/route.ts'
import type { RouteTable } from '../../core/routes/router.ts'
import { CliError, toCliError, usageError } from '../errors.ts'
import type { Io, Output } from '../output/print.ts'
import { currentUser, type DurableAddress, parseStoreUrl, type StoreAddress } from './url.ts'

export interface StoreOptions {
  /** Create the store if there is none, and migrate its schema. */
  readonly create?: boolean
  /** Change nothing in the store, not even by opening it. */
  readonly readOnly?: boolean
  /** Whether to say that the store is new, if it is; default true. */
  readonly announce?: boolean
  /** First part of every key of a new store. */
  readonly keyPrefix?: string | undefined
  /** Whether to share limits with other processes that open the store so; default as that of the store. */
  readonly shareLimits?: boolean | undefined
}

export interface StoreAccess {
  /** The store's URL as given; it may contain a password and is never printed. */
  readonly storeUrl: string
  readonly io: Io
  readonly output: Output
}

/** @param command Gets the store, and whether it was created for this command. */
export async function withStore<T>(
  access: StoreAccess,
  options: StoreOptions,
  command: (store: Store, isNew: boolean) => Promise<T>,
): Promise<T> {
  const { storeUrl, io, output } = access
  const { create = false, announce = true } = options
  const address = parseStoreUrl(storeUrl)
  if (address.kind === 'memory') {
    output.note('warning: A memory: store starts empty and ends with this command.')
  }
  const isMissing = create && await isMissingStore(access)
  const store = await openStore(address, io.env, options)
  // The name of another store may be misspelled.
  if (isMissing && announce) output.note(`Created a new, empty store at ${await describeStore(access)}.`)
  return await useStore(store, () => command(store, isMissing || address.kind === 'memory'))
}

/** Runs `work`, with suggestions in its error, and closes the store. */
async function useStore<T>(store: Store, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (/_not_found$|^usage$/.test(toCliError(error).code)) {
      const { suggestStored } = await import('../suggest.ts')
      await suggestStored(error, store)
    }
    throw error
  } finally {
    await store.close()
  }
}

/** Loads the code of one kind of store only. @throws {CliError} `store_missing` */
async function openStore(
  address: StoreAddress,
  env: Io['env'],
  { create = false, readOnly = false, keyPrefix, shareLimits }: StoreOptions,
): Promise<Store> {
  const settings = {
    migrate: create,
    ...(keyPrefix !== undefined && { keyPrefix }),
    ...(shareLimits !== undefined && { shareLimits }),
  }
  if (address.kind === 'postgres') {
    await postgresLocation(address.url, env)
    const { openPostgresStore } = await import('../../adapters/stores/postgres/store.ts')
    return await openPostgresStore(address.url, settings)
  }
  const { openSqliteStore } = await import('../../adapters/stores/sqlite/store.ts')
  if (address.kind === 'memory') return await openSqliteStore(':memory:', { ...settings, migrate: true })
  if (!create) requireFile(address.file)
  const options = { create, readOnly, ...settings }
  return await openSqliteFile(address.file, () => openSqliteStore(address.file, options))
}

/** Runs `work` on an empty store in memory, which ends with it: a change that is refused then creates no store. */
export async function withEmptyStore(work: (store: Store) => Promise<unknown>): Promise<void> {
  const { openSqliteStore } = await import('../../adapters/stores/sqlite/store.ts')
  const store = await openSqliteStore(':memory:')
  await useStore(store, () => work(store))
}

/** Milliseconds since the epoch, by the store's clock if it has one. */
export function timeOf(store: Store): number {
  return clockOf(store).now()
}

/** All modules of the store; the built-in ones if there is no store. */
export async function modulesOf(access: StoreAccess): Promise<Modules> {
  return await isMissingStore(access) ? await modulesWith([]) : await withStore(access, {}, readModules)
}

/** The endpoints of a store's services. */
export interface Endpoints extends RouteTable {
  readonly keyedRoutes: readonly KeyedRoute[]
  readonly modules: Modules
}

/** Every endpoint: the built-in ones, and those that services have recorded and whose scope a module still has. */
export async function readEndpoints(
  store: Pick<Store, 'listEndpoints' | 'listModules'>,
  serviceName: string = 'service',
): Promise<Endpoints> {
  // Loaded here, with the schemas of all endpoints.
  const { compileRoutes, ROUTES } = await import('../../core/routes/router.ts')
  const modules = await readModules(store)
  const routes: Route[] = [...ROUTES]
  const recorded = await store.listEndpoints()
  // A router tries fixed segments before parameters.
  const sorted = recorded.toSorted((a, b) => placeOf(a) < placeOf(b) ? -1 : 1)
  for (const { path, service, ...endpoint } of sorted) {
    const rooted = { path: path.replace(/\{(\w+)\}/g, ':$1') as Route['path'], atRoot: true } as const
    const index = routes.findIndex(({ name }) => name === endpoint.name)
    const isBuiltIn = index >= 0 && index < ROUTES.length
    if (isBuiltIn && service !== serviceName) continue
    if (isBuiltIn) routes[index] = { ...routes[index]!, ...rooted }
    else if (modules.moduleFor(endpoint.scope ?? '') !== undefined) {
      routes.push({ access: 'key', ...endpoint, ...rooted } as KeyedRoute)
    }
  }
  const keyedRoutes = routes.filter((route) => route.access === 'key')
  return { keyedRoutes, modules, ...compileRoutes(routes, serviceName) }
}

function placeOf({ path }: { readonly path: string }): string {
  return path.replaceAll('{', '\uffff')
}

/** Whether opening the store would create it. */
export async function isMissingStore({ storeUrl, io: { env } }: StoreAccess): Promise<boolean> {
  const address = parseStoreUrl(storeUrl)
  if (address.kind === 'memory') return false
  try {
    await schemaStatus(address, env)
    return false
  } catch (error) {
    if (toCliError(error).code === 'store_missing') return true
    throw error
  }
}

/** @throws {CliError} `store_missing` */
export async function schemaStatus(address: DurableAddress, env: Io['env']): Promise<MigrationStatus> {
  const location = address.kind === 'postgres' ? await postgresLocation(address.url, env) : address.file
  const status = await readStatus(address)
  if (status.current === 0) throw storeMissingError(location)
  return status
}

async function readStatus(address: DurableAddress): Promise<MigrationStatus> {
  if (address.kind === 'postgres') {
    const { migrationStatus } = await import('../../adapters/stores/postgres/migrate.ts')
    return await migrationStatus(address.url)
  }
  requireFile(address.file)
  const { migrationStatus } = await import('../../adapters/stores/sqlite/migrate.ts')
  return await openSqliteFile(address.file, () => migrationStatus(address.file))
}

/** The location of a store, without any password. */
export async function describeStore({ storeUrl, io: { env } }: StoreAccess): Promise<string> {
  const address = parseStoreUrl(storeUrl)
  if (address.kind === 'postgres') return await postgresLocation(address.url, env)
  return address.kind === 'sqlite' ? resolve(address.file) : 'memory:'
}

/** @throws {CliError} exit code 2 for an invalid URL. */
async function postgresLocation(url: string, env: Io['env']): Promise<string> {
  const { parseUrl } = await import('../../adapters/stores/postgres/url.ts')
  try {
    return parseUrl(url, { environment: env, user: currentUser(env) }).location
  } catch (error) {
    throw usageError(toCliError(error).message)
  }
}

/** @throws {CliError} `store_missing` */
export function requireFile(file: string): void {
  if (!existsSync(file)) throw storeMissingError(file)
}

function storeMissingError(location: string): CliError {
  const remedy = { purpose: 'To create one', command: 'migrate', args: [] }
  return new CliError(3, 'store_missing', `There is no store at ${location}.`, { remedy })
}

/** What a copy is called before it is complete: a restored one accepts what was revoked since the backup until then. */
export function partialName(target: string): string {
  return `${target}.${process.pid}.partial`
}

/** Opens a SQLite file. SQLite does not report why it fails; this finds the reason in the file system. */
export async function openSqliteFile<T>(file: string, open: () => T | Promise<T>): Promise<T> {
  if (/\.\d+\.partial$/.test(file)) {
    const reason = 'a backup or a restore that was killed has left it incomplete. Repeat that, and delete it'
    throw new CliError(1, 'refused', `The store ${file} cannot be used: ${reason}.`)
  }
  try {
    return await open()
  } catch (error) {
    const { exitCode, code } = toCliError(error)
    const obstacle = code === 'store_unavailable' ? diagnoseFile(file) : undefined
    if (obstacle === undefined) throw error
    throw new CliError(exitCode, code, `The store ${file} cannot be used: ${obstacle}.`)
  }
}

function diagnoseFile(file: string): string | undefined {
  const folder = dirname(file)
  const inFolder = accessError(folder, constants.W_OK | constants.X_OK)
  if (inFolder === 'ENOENT' || inFolder === 'ENOTDIR') return `there is no folder ${folder}`
  if (accessError(`${file}/.`, constants.F_OK) === undefined) return 'it is a folder'
  if (isForbidden(file, constants.R_OK)) return 'this account may not read it'
  if (isForbidden(file, constants.W_OK)) return 'this account may read but not write it'
  return inFolder && `this account may not write in ${folder}, where SQLite creates further files`
}

function isForbidden(file: string, mode: number): boolean {
  return !['ENOENT', undefined].includes(accessError(file, mode))
}

/** @returns The error code, `undefined` when the access is allowed. */
function accessError(path: string, mode: number): string | undefined {
  try {
    accessSync(path, mode)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
}

/** The files of a SQLite store that other accounts can read or write. */
export function exposedFiles(file: string): string[] {
  // Windows has no file modes.
  if (process.platform === 'win32') return []
  return [file, `${file}-wal`, `${file}-shm`].filter((path) => {
    const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & 0o077) !== 0
  })
}
