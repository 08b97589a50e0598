import type { Store } from '../../core/ports/store.ts'

/** Opens what a template has copied: a SQLite file or a Postgres database. Only the code of its kind is loaded. */
export async function openStore(address: string): Promise<Store> {
  if (address.startsWith('postgres:')) {
    const { openPostgresStore } = await import('../../adapters/stores/postgres/store.ts')
    return await openPostgresStore(address, { migrate: false, lookUpTimeoutMs: 10_000 })
  }
  const { openSqliteStore } = await import('../../adapters/stores/sqlite/store.ts')
  return await openSqliteStore(address, { create: false })
}
