/** What tests of PostgreSQL open; it is closed when they end. */
import { randomBytes } from 'node:crypto'
import process from 'node:process'
import postgres, { type Sql } from 'postgres'
import type { Test } from 'tap'
import {
  connect,
  type ConnectOptions,
  type PostgresDatabase,
} from '../../adapters/stores/postgres/database.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { Store } from '../../core/ports/store.ts'
import { hasServer } from './binaries.ts'
import {
  type Databases,
  PATIENT,
  type PostgresServer,
  type ServerOptions,
  startServer,
  useServer,
} from './server.ts'
import { until } from './until.ts'

/** Starts a server for a test, which may kill it. Without the programs, the file is skipped. */
export async function serverFor(t: Test, options: ServerOptions = {}): Promise<PostgresServer> {
  skipWithoutServer(t)
  const server = await startServer(options)
  t.teardown(() => server.close())
  return server
}

/** Databases for a test, on a server that others use, too. Without the programs, the file is skipped. */
export async function databasesFor(t: Test): Promise<Databases> {
  skipWithoutServer(t)
  const databases = await useServer()
  t.teardown(() => databases.close())
  return databases
}

function skipWithoutServer(t: Test): void {
  const reason = hasServer()
  if (reason === undefined) return
  t.plan(0, reason)
  process.exit()
}

export function openDatabase(t: Test, url: string, options?: ConnectOptions): PostgresDatabase {
  const database = connect(url, options)
  t.teardown(() => database.close())
  return database
}

/** @param max Connections. */
export function openSql(t: Test, url: string, max = 3): Sql {
  const sql = postgres(url, { max, onnotice: () => {}, idle_timeout: 1, prepare: false })
  t.teardown(() => sql.end({ timeout: 0 }))
  return sql
}

export interface StorePlace {
  readonly url: string
  readonly store: Store
  /** Reads and writes the database without the store. */
  readonly sql: Sql
  /** Opens the store once more. */
  open(url?: string): Promise<Store>
}

/** A store in a database of its own. @param way The URL under which the store reaches it. */
export async function createPlace(
  t: Test,
  server: Pick<Databases, 'createDatabase'>,
  way: (url: string) => string = (url) => url,
): Promise<StorePlace> {
  const database = await server.createDatabase()
  const url = way(database)
  async function open(at = url): Promise<Store> {
    const store = await openPostgresStore(at, PATIENT)
    t.teardown(async () => await store.close())
    return store
  }
  return { url, store: await open(), sql: openSql(t, database), open }
}

/** Closes the store, and opens it for `use`. @returns How often that reads a table as a whole. */
export async function scansBy(
  { store, sql, open }: StorePlace,
  table: string,
  use: (store: Store) => Promise<unknown>,
): Promise<number> {
  // Connections count when they end.
  async function count(store: Store): Promise<number> {
    await store.close()
    await until(async () => {
      const others = await sql`SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`
      return others.length === 0
    }, 'other connections to be closed')
    const [counted] = await sql`SELECT seq_scan FROM pg_stat_user_tables WHERE relname = ${table}`
    return Number(counted!['seq_scan'])
  }
  const before = await count(store)
  const opened = await open()
  await use(opened)
  return await count(opened) - before
}

/**
 * A store for the contracts: a server takes fifty times as long to create one as to empty one.
 *
 * @param way The URL under which stores reach a database of the server.
 */
export async function contractStore(
  server: Pick<PostgresServer, 'createDatabase'>,
  way = (url: string) => url,
) {
  const url = await server.createDatabase()
  const open = () => openPostgresStore(way(url), PATIENT)
  const store = await open()
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  // Newer tables refer to older ones.
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class c join pg_namespace n on n.oid = relnamespace
    where nspname = 'partner_api' and relkind = 'r' and relname not in ('migration', 'store', 'revision')
    order by c.oid desc`
  const empty = tables.map(({ name }) => `delete from partner_api.${name};`).join('\n')

  return {
    open,
    /** Empties the store, which stays open. */
    async emptied(): Promise<Store> {
      await sql.unsafe(`
        ${empty}
        update partner_api.revision set changes = 0, mark = '${randomBytes(8).toString('hex')}';
        update partner_api.store set audit_sequence = 0, audit_hash = ''`)
      return { ...store, close: () => Promise.resolve() }
    },
    async close() {
      await store.close()
      await sql.end({ timeout: 0 })
    },
  }
}

/** @returns What a promise was rejected with, or undefined. */
export function outcomeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(() => undefined, (error: unknown) => error)
}

/** Whether a statement in the database waits for a lock. */
export async function waitsForLock(sql: Sql): Promise<boolean> {
  const waiting = await sql`
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  return waiting.length > 0
}
