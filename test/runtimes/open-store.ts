import type { Store } from '../../core/ports/store.ts'

/** Opens a copy of a template: a SQLite file or a PostgreSQL database. Loads only the code of its kind. */
export async function openStore(address: string): Promise<Store> {
  if (address.startsWith('postgres:')) {
    const { openPostgresStore } = await import('../../adapters/stores/postgres/store.ts')
    return await openPostgresStore(address, { migrate: false, lookUpTimeoutMs: 10_000 })
  }
  const { openSqliteStore } = await import('../../adapters/stores/sqlite/store.ts')
  return await openSqliteStore(address, { create: false })
}
