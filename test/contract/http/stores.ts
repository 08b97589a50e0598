/** Stores for the suites: empty ones, opened once by the operator and once by the service. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../../adapters/stores/sqlite/store.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import type { OpenStores } from './deploy.ts'

/** A new file with two connections. */
export async function sqliteFile(): Promise<OpenStores> {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-http-'))
  const open = () => openSqliteStore(join(folder, 'store.db'))
  const operator = await open()
  const served = await open()
  return {
    operator,
    served,
    async close() {
      await Promise.all([operator.close(), served.close()])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** One store in memory for both: it cannot be opened twice. */
export async function memory(): Promise<OpenStores> {
  const store = await openMemoryStore()
  return { operator: store, served: store, close: async () => await store.close() }
}
