/** Stores to copy from and to, and copies in this process. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CopyReport, copyStore } from '../../../adapters/stores/copy/copy.ts'
import type { CopySource, CopyTarget } from '../../../adapters/stores/copy/ends.ts'
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import { openSqliteStore } from '../../../adapters/stores/sqlite/store.ts'
import { openSource, openTarget } from '../../../cli/store/command.ts'
import type { Store } from '../../../core/ports/store.ts'
import { hasServer } from '../../postgres/binaries.ts'
import { type PostgresServer, startServer } from '../../postgres/server.ts'

export type Kind = 'sqlite' | 'postgres'

/** Places for new stores. The server is missing where none can be started. */
export async function openPlaces() {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-copies-'))
  const server: PostgresServer | undefined = hasServer() === undefined ? await startServer() : undefined
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

/** Runs work on both ends of a copy. */
export async function withEnds<T>(
  from: string,
  to: string,
  work: (source: CopySource, target: CopyTarget) => Promise<T>,
): Promise<T> {
  const source = await openSource(from)
  try {
    const target = await openTarget(to)
    try {
      return await work(source, target)
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

/** Copies a store. @param view Wraps the source. */
export function copy(
  from: string,
  to: string,
  view: (source: CopySource) => CopySource = (source) => source,
): Promise<CopyReport> {
  return withEnds(from, to, (source, target) => copyStore(view(source), target, { now: Date.now() }))
}

/** Where a copy is interrupted: the step, the table, and the number of rows. */
export type Stop = readonly [doing: 'copying' | 'comparing', table: string, rows: number]

const interruption = new Error('interrupted')

/** Copies a store up to a stop. */
export async function copyUpTo(from: string, to: string, stop: Stop): Promise<void> {
  try {
    await withEnds(from, to, (source, target) => interruptedCopy(source, target, stop))
  } catch (error) {
    if (error === interruption) return
    throw error
  }
  throw new Error(`the copy did not reach ${stop.join(' ')}`)
}

export function interruptedCopy(
  source: CopySource,
  target: CopyTarget,
  [doing, table, rows]: Stop,
): Promise<CopyReport> {
  return copyStore(source, target, {
    now: Date.now(),
    progress(now, at, seen) {
      if (now === doing && at === table && seen >= rows) throw interruption
    },
  })
}
