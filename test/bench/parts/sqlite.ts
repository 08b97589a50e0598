/**
 * SQLite with a million keys and a million profiles, in process. Every look-up and every page is another one, or
 * one of long ago: no reply is kept, and of the store's answers SQLite keeps what its page cache holds.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import type { Store } from '../../../core/ports/store.ts'
import { createRandom, pick } from '../data/random.ts'
import { createService, issueKey } from '../data/tenant.ts'
import { figure, median, quantile } from '../figures.ts'
import type { Row } from '../report.ts'
import { keyIds, openBigStore } from '../sqlite/big-store.ts'
import { timeImport } from '../sqlite/import.ts'
import { QUESTIONS } from '../sqlite/questions.ts'
import { pipelineReader, storeReader, timePages } from '../sqlite/reading.ts'

const rows = Number(process.env['PARTNER_API_BENCH_ROWS'] ?? 1_000_000)
const imported = 5000
const lookUps = 20_000

export async function run(): Promise<Row[]> {
  const kept = process.env['PARTNER_API_BENCH_DIR']
  const directory = kept ?? await mkdtemp(join(tmpdir(), 'partner-api-bench-'))
  try {
    const store = await openBigStore(directory, rows)
    try {
      return [...await keyRows(store), ...await pageRows(store), await importRow()]
    } finally {
      await store.close()
    }
  } finally {
    if (kept === undefined) await rm(directory, { recursive: true })
  }
}

/** Look-ups that no cache of the service answers: of pages that SQLite has to read first, and of pages that it has. */
async function keyRows(store: Store): Promise<Row[]> {
  const ids = keyIds(rows)
  const random = createRandom(3)
  const some = () => Array.from({ length: lookUps }, () => pick(ids, random))
  const first = await timeLookUps(store, some())
  await timeLookUps(store, ids)
  const later = await timeLookUps(store, some())
  const row = (what: string, times: readonly number[]): Row => ({
    part: 'sqlite',
    what: `key look-up among ${rows.toLocaleString('en')}, ${what}`,
    ours: percentiles(times, 'µs'),
    target: 'p50 ≤ 6 µs',
    met: median(times) <= 6,
  })
  return [row('after opening', first), row('after a look at each', later)]
}

/** @returns Microseconds for each id. */
async function timeLookUps(store: Store, ids: readonly string[]): Promise<number[]> {
  const times: number[] = []
  for (const id of ids) {
    const startedAt = performance.now()
    const found = store.findKey(id)
    const facts = found instanceof Promise ? await found : found
    times.push((performance.now() - startedAt) * 1000)
    if (facts?.key.id !== id) throw new Error('A key was not found.')
  }
  return times
}

async function pageRows(store: Store): Promise<Row[]> {
  const service = createService(store, 0)
  const key = await issueKey(store)
  const result: Row[] = []
  for (const kind of QUESTIONS) {
    const whole = await timePages(kind, pipelineReader(service, key))
    const alone = await timePages(kind, storeReader(store))
    result.push({
      part: 'sqlite',
      what: `page: ${kind.name}`,
      ours: percentiles(whole, 'ms'),
      against: `store alone ${percentiles(alone, 'ms')}`,
      target: 'p50 ≤ 1 ms',
      met: median(whole) <= 1,
    })
  }
  await service.close()
  return result
}

async function importRow(): Promise<Row> {
  const seconds = await timeImport(imported)
  return {
    part: 'sqlite',
    what: `content import of ${imported.toLocaleString('en')} profiles`,
    ours: figure(seconds, 's'),
    target: '≤ 5 s',
    met: seconds <= 5,
  }
}

function percentiles(values: readonly number[], unit: string): string {
  return `p50 ${figure(median(values), unit)}, p99 ${figure(quantile(values, 0.99), unit)}`
}
