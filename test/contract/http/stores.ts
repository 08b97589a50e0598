/** Stores for the suites: empty ones, opened once by the operator and once by the service. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMemoryStore } from '../../../adapters/stores/memory/store.ts'
import { openSqliteStore } from '../../../adapters/stores/sqlite/store.ts'
import type { OpenStores } from './deploy.ts'

/** A new file with two connections. */
export async function sqliteFile(): Promise<OpenStores> {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-http-'))
  const open = () => openSqliteStore(join(folder, 'store.db'))
  const [operator, served] = [await open(), await open()]
  return {
    operator,
    served,
    async close() {
      await Promise.all([operator.close(), served.close()])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** One memory store for both: it cannot be opened twice. */
export function memory(): Promise<OpenStores> {
  const store = createMemoryStore()
  return Promise.resolve({
    operator: store,
    served: store,
    close: () => Promise.resolve(store.close()),
  })
}
