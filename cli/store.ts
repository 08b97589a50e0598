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
export async function openStore(address: StoreAddress, { create = false }: Opening): Promise<Store> {
  if (address.kind === 'memory') {
    const { createMemoryStore } = await import('../adapters/stores/memory/store.ts')
    return createMemoryStore()
  }
  const { existsSync } = await import('node:fs')
  if (!create && !existsSync(address.file)) throw storeMissing(address.file)
  silenceSqliteWarning()
  const { openSqliteStore } = await import('../adapters/stores/sqlite/store.ts')
  return await openSqliteStore(address.file, { create, migrate: create })
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
