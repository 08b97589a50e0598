/** Where stores are copied from and to. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import { openSqliteStore } from '../../../adapters/stores/sqlite/store.ts'
import type { Store } from '../../../core/ports/store.ts'
import { hasServer } from '../../postgres/binaries.ts'
import { type PostgresServer, startServer } from '../../postgres/server.ts'

export type Kind = 'sqlite' | 'postgres'

/** New places for stores, as URLs. */
export interface Places {
  /** The kinds that this machine has. */
  readonly kinds: readonly Kind[]
  /** Where the databases are. */
  readonly server: PostgresServer | undefined
  /** The URL of a place where nothing is yet. */
  vacant(kind: Kind): Promise<string>
  close(): Promise<void>
}

export async function openPlaces(): Promise<Places> {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-copies-'))
  const server: PostgresServer | undefined = hasServer() === undefined ? await startServer() : undefined
  let files = 0
  return {
    server,
    kinds: server === undefined ? ['sqlite'] : ['sqlite', 'postgres'],
    vacant: (kind) =>
      kind === 'sqlite'
        ? Promise.resolve(`sqlite:${join(folder, `${++files}.db`)}`)
        : server!.createDatabase(),
    async close() {
      await server?.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Opens the store at a URL, and makes it when there is none. */
export function openAt(url: string): Promise<Store> {
  return url.startsWith('sqlite:') ? openSqliteStore(fileOf(url)) : openPostgresStore(url)
}

/** The file of a SQLite store. */
export function fileOf(url: string): string {
  return url.slice('sqlite:'.length)
}
