/** Stores to copy from and to, and copies in this process. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgresCopy } from '../../../adapters/stores/postgres/copy.ts'
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import {
  type CopyDatabase,
  type CopyProgress,
  copyStore,
  type TableReport,
} from '../../../adapters/stores/sql/copy.ts'
import { openSqliteCopy } from '../../../adapters/stores/sqlite/copy.ts'
import { openSqliteStore } from '../../../adapters/stores/sqlite/store.ts'
import type { Store } from '../../../core/ports/store.ts'
import { hasServer } from '../../postgres/binaries.ts'
import { type Databases, useServer } from '../../postgres/server.ts'

export type Kind = 'sqlite' | 'postgres'

/** Places for new stores. The server is missing where none can be started. */
export async function openPlaces() {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-copies-'))
  const server: Databases | undefined = hasServer() === undefined ? await useServer() : undefined
  let files = 0
  return {
    server,
    kinds: (server === undefined ? ['sqlite'] : ['sqlite', 'postgres']) as readonly Kind[],
    /** The URL of a place without a store. */
    vacant: (kind: Kind) =>
      kind === 'sqlite'
        ? Promise.resolve(`sqlite:${join(folder, `${++files}.db`)}`)
        : server!.createDatabase(),
    async close() {
      await server?.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Opens the store at a URL, and creates it if there is none. */
export function openAt(url: string): Promise<Store> {
  return url.startsWith('sqlite:') ? openSqliteStore(fileOf(url)) : openPostgresStore(url)
}

/** Opens the store at a URL for some work, and closes it. */
export async function withStoreAt<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openAt(url)
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

/** The file of a SQLite store. */
export function fileOf(url: string): string {
  return url.slice('sqlite:'.length)
}

function openEnd(url: string, create: boolean): CopyDatabase {
  return url.startsWith('sqlite:') ? openSqliteCopy(fileOf(url), { create }) : openPostgresCopy(url)
}

/** Copies a store. */
export async function copy(
  from: string,
  to: string,
  progress?: CopyProgress,
): Promise<readonly TableReport[]> {
  const source = openEnd(from, false)
  try {
    return await copyStore(source, () => Promise.resolve(openEnd(to, true)), progress)
  } finally {
    await source.close()
  }
}

/** Where a copy is interrupted: the step, and the table. */
export type Stop = readonly [doing: 'copying' | 'comparing', table: string]

/** Copies a store up to a stop. */
export async function copyUpTo(from: string, to: string, [doing, table]: Stop): Promise<void> {
  const interruption = new Error('interrupted')
  try {
    await copy(from, to, (now, at) => {
      if (now === doing && at === table) throw interruption
    })
  } catch (error) {
    if (error === interruption) return
    throw error
  }
  throw new Error(`the copy did not reach ${doing} ${table}`)
}
