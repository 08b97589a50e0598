/**
 * PostgreSQL on the loopback, with a million profiles: look-ups of keys that no cache has, what cached ones cost, and
 * pages of the directory. The server has its default settings; its files are in memory
 * where there is enough, and nothing waits for a disk.
 */
import process from 'node:process'
import type { Sql } from 'postgres'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { Store } from '../../core/ports/store.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'
import { startServing, stopServing } from '../support/cli-program.ts'
import { SERVER_QUESTIONS, storeReader, timePages } from './directory.ts'
import { load } from './load.ts'
import { addKeys, lookUpRows } from './look-ups.ts'
import { INDUSTRIES, profiles } from './profiles.ts'
import { figure, median, quantile, type Row } from './report.ts'
import { CACHED_TARGET, issueKey } from './tenant.ts'

const rows = Number(process.env['PARTNER_API_BENCH_ROWS'] ?? 1_000_000)
const keys = 100_000

export async function run(): Promise<Row[]> {
  const reason = hasServer()
  if (reason !== undefined) return [{ part: 'postgres', what: 'not measured', ours: reason }]
  const server = await startServer({ settings: { shared_preload_libraries: 'pg_stat_statements' } })
  try {
    await server.admin`create extension pg_stat_statements`
    const url = await server.createDatabase()
    const store = await openPostgresStore(url)
    try {
      await issueKey(store)
      await addProfiles(store, rows)
      return [
        ...await lookUpRows(url, store, await addKeys(url, keys)),
        await warmRow(url, store, server.admin),
        ...await timeDirectory(store, rows),
      ]
    } finally {
      await store.close()
    }
  } finally {
    await server.close()
  }
}

/** As many as are held at once: all of a million would fill the memory of a small machine. */
const chunk = 50_000

/** Imports industries and the first `count` profiles. A million take two or three minutes. */
async function addProfiles(store: Store, count: number): Promise<void> {
  const stamp = { now: Date.now(), actor: 'bench' }
  await store.importContent('industries', INDUSTRIES, stamp)
  for (let start = 0; start < count; start += chunk) {
    await store.importContent('profiles', [...profiles(Math.min(chunk, count - start), start)], stamp)
  }
}

/** Pages of a store with that many profiles, as long as they take without the service around it. */
async function timeDirectory(store: Pick<Store, 'listProfiles'>, count: number): Promise<Row[]> {
  const result: Row[] = []
  for (const [name, kind] of Object.entries(SERVER_QUESTIONS)) {
    const times = await timePages(kind, storeReader(store))
    const targetMs = kind(() => 0).word === undefined ? 2 : 10
    result.push({
      part: 'postgres',
      what: `page of ${count.toLocaleString('en')}: ${name}`,
      ours: `p50 ${figure(median(times), 'ms')}, p99 ${figure(quantile(times, 0.99), 'ms')}`,
      target: `p50 ≤ ${targetMs} ms`,
      met: median(times) <= targetMs,
    })
  }
  return result
}

/** What requests cost Postgres whose keys and answers a replica knows: its own statistics say it. */

/** Statements that no request waits for: quota leases, heartbeats, polls, flushes, key usage, and transactions. */
const background =
  /quota_window|partner_api\.(?:replica|revision|usage|signup_tally)\b|last_used_at|^(?:begin|commit|rollback|set|show|listen)\b|pg_is_in_recovery/i

/** Reads one page with one key again and again, from a replica in its own process. The server has pg_stat_statements. */
async function warmRow(url: string, store: Store, admin: Sql): Promise<Row> {
  const key = await issueKey(store)
  const served = await startServing(['serve', '--port', '0', '--limit', 'key=1000000/60'], url)
  try {
    const { port } = new URL(served.url)
    const request = `GET ${CACHED_TARGET} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n\r\n`
    const ask = (seconds: number) => load(Number(port), 32, seconds, request)
    await ask(0.5)
    await admin`select pg_stat_statements_reset()`
    let answers = 0
    while (answers < 100_000) answers += (await ask(1)).answers
    const statements = await admin`
      select query, calls::int from pg_stat_statements s join pg_database d on d.oid = s.dbid
      where d.datname = ${new URL(url).pathname.slice(1)}`
    const waitedFor = statements.filter(({ query }) => !background.test(query))
    return {
      part: 'postgres',
      what: `statements that ${answers.toLocaleString('en')} warm reads wait for`,
      ours: String(waitedFor.reduce((sum, { calls }) => sum + calls, 0)),
      target: '0',
      met: waitedFor.length === 0,
    }
  } finally {
    await stopServing(served)
  }
}
