/**
 * Postgres on the loopback, with a million profiles: look-ups of keys that nobody knows yet, what known ones cost, what
 * replicas owe each other, and pages of the directory. The server has its default settings; its files are in memory
 * where there is enough, and nothing waits for a disk.
 */
import process from 'node:process'
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import { hasServer } from '../../postgres/binaries.ts'
import { startServer } from '../../postgres/server.ts'
import { issueKey } from '../data/tenant.ts'
import { timeDirectory } from '../postgres/directory-rows.ts'
import { addKeys } from '../postgres/key-rows.ts'
import { lookUpRows } from '../postgres/look-ups.ts'
import { addProfiles } from '../postgres/profiles.ts'
import { quotaRows, receiptRow } from '../postgres/sharing.ts'
import { warmRows } from '../postgres/warm-requests.ts'
import type { Row } from '../report.ts'

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
    const result: Row[] = []
    try {
      await issueKey(store)
      await addProfiles(store, rows)
      result.push(
        ...await lookUpRows(url, store, await addKeys(url, keys)),
        ...await warmRows(url, store, server.admin),
        ...await timeDirectory(store, rows),
      )
    } finally {
      await store.close()
    }
    result.push(
      await receiptRow(await server.createDatabase()),
      ...await quotaRows(await server.createDatabase(), server.admin),
    )
    return result
  } finally {
    await server.close()
  }
}
