import { existsSync } from 'node:fs'
import process from 'node:process'
import type { Store } from '../core/ports.ts'
import { Failure } from './failure.ts'
import { parseStoreUrl, type StoreAddress } from './input/store-address.ts'
import type { Invocation } from './invocation.ts'
import { printNote } from './output/print.ts'

/** How a command wants its store. */
export interface Opening {
  /** Make the file, and bring its schema up to this version's, when it is not so yet. */
  readonly create?: boolean
  /** Show an empty store where there is no file, and make none. What is written to it is lost. */
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

/**
 * Opens a store. Only the code of its kind is loaded.
 *
 * @throws {Failure} `store_missing` when there is no file and `create` is not set.
 */
async function openStore(
  address: StoreAddress,
  { create = false, emptyWhenMissing = false }: Opening,
): Promise<Store> {
  const isMissing = !create && isMissingStore(address)
  if (isMissing && !emptyWhenMissing) throw storeMissing(address.file)
  if (isMissing || address.kind === 'memory') {
    const { createMemoryStore } = await import('../adapters/stores/memory/store.ts')
    return createMemoryStore()
  }
  silenceSqliteWarning()
  const { openSqliteStore } = await import('../adapters/stores/sqlite/store.ts')
  return await openSqliteStore(address.file, { create, migrate: create })
}

/** Whether there is no file where the store should be. */
export function isMissingStore(
  address: StoreAddress,
): address is Extract<StoreAddress, { readonly kind: 'sqlite' }> {
  return address.kind === 'sqlite' && !existsSync(address.file)
}

/** There is no store where one was expected. */
export function storeMissing(file: string): Failure {
  return new Failure(3, 'store_missing', `There is no store at ${file}. To make one: partner-api migrate`)
}

/** Node 22 and 24 call node:sqlite experimental on standard error, once in every command. */
export function silenceSqliteWarning(): void {
  const emitWarning = process.emitWarning as (...args: unknown[]) => void
  process.emitWarning = (...args: unknown[]) => {
    if (args[1] === 'ExperimentalWarning' && String(args[0]).startsWith('SQLite ')) return
    emitWarning.apply(process, args)
  }
}
