import { openSqliteStore, type SqliteStoreOptions } from '../../adapters/stores/sqlite/store.ts'
import type { Store } from '../../core/ports/store.ts'
import { noReplicas } from './stub-store.ts'

/** Opens an empty store in memory. It ends with the process: a test need not close it. */
export function openMemoryStore(options: SqliteStoreOptions = {}): Promise<Store> {
  return openSqliteStore(':memory:', options)
}

/** One whose services do not register: they answer the first request at once, too, and set fewer timers. */
export async function openUnregisteredStore(): Promise<Store> {
  return { ...await openMemoryStore(), replicas: noReplicas }
}

/** Opens one for several users in this process: a store in memory has no second connection. */
export async function shareMemoryStore(): Promise<() => Promise<Store>> {
  const store = await openMemoryStore()
  return () => Promise.resolve(store)
}
