/**
 * SQLite with a million keys and a million profiles, in process. Every look-up and every page is another one, or
 * one of long ago: no reply is kept, and of the store's answers SQLite keeps what its page cache holds.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { formatContentLine } from '../../core/content/lines.ts'
import type { Store } from '../../core/ports/store.ts'
import { pipelineReader, QUESTIONS, storeReader, timePages } from './directory.ts'
import { createRandom, INDUSTRIES, PARTNER, pick, profiles } from './profiles.ts'
import { figure, median, quantile, type Row } from './report.ts'
import { createService, issueKey, keyFor } from './tenant.ts'

const runFile = promisify(execFile)
const program = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))
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

/** Uncached look-ups, of pages that SQLite must read and of pages in its cache. */
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
  for (const [name, kind] of Object.entries(QUESTIONS)) {
    const whole = await timePages(kind, pipelineReader(service, key))
    const alone = await timePages(kind, storeReader(store))
    result.push({
      part: 'sqlite',
      what: `page: ${name}`,
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

const keysPerChange = 25_000
const partners = Array.from({ length: 1000 }, (_, number) => `partner-${number}`)

/** Opens the store of so many rows in a directory. It is made unless it is there from another run. */
async function openBigStore(directory: string, rows: number): Promise<Store> {
  const file = join(directory, `partner-api-bench-${rows}.db`)
  if (!existsSync(file)) {
    // Renamed when complete, so that an interrupted run leaves no partial file.
    const unfinished = join(directory, `unfinished-${process.pid}.db`)
    const store = await openSqliteStore(unfinished)
    try {
      await addKeys(store, rows)
      await addProfiles(store, rows)
    } finally {
      await store.close()
    }
    await rename(unfinished, file)
  }
  return await openSqliteStore(file)
}

/** The ids of the store's keys: the same in every run, in order, so that they are inserted where the last one was. */
function keyIds(rows: number): readonly string[] {
  const random = createRandom(7)
  const part = () => Math.floor(random() * 2_176_782_336).toString(36).padStart(6, '0')
  return Array.from({ length: rows }, () => part() + part()).sort()
}

async function addKeys(store: Store, rows: number): Promise<void> {
  const apply = async (changes: Parameters<Store['apply']>[0]) => {
    const { facts } = await store.revision()
    if (!await store.apply(changes, facts, { actor: 'bench', at: Date.now() })) {
      throw new Error('Somebody else changes the store.')
    }
  }
  await apply(partners.map((slug) => ({
    type: 'partner.created',
    partner: { slug, name: slug, state: 'active', modules: ['profiles'], limits: {}, createdAt: 0 },
  })))
  const ids = keyIds(rows)
  for (let start = 0; start < rows; start += keysPerChange) {
    await apply(
      ids.slice(start, start + keysPerChange).map((id, index) => ({
        type: 'key.issued',
        key: keyFor(id, partners[(start + index) % partners.length]!, store.sha256(id)),
      })),
    )
  }
}

async function addProfiles(store: Store, rows: number): Promise<void> {
  const options = { now: Date.now(), actor: 'bench' }
  await store.importContent('industries', INDUSTRIES, options)
  await store.importContent('profiles', profiles(rows), options)
}

/** Seconds that `content import` of so many profiles takes an operator, including the start of the program. */
async function timeImport(count: number): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), 'partner-api-bench-'))
  try {
    const [industryFile, profileFile] = ['industries', 'profiles'].map((kind) =>
      join(directory, `${kind}.jsonl`)
    )
    const lines = (all: Iterable<string>): string => Array.from(all, (line) => `${line}\n`).join('')
    await writeFile(industryFile!, lines(INDUSTRIES.map((record) => formatContentLine('industries', record))))
    await writeFile(
      profileFile!,
      lines(profiles(count).map((record) => formatContentLine('profiles', record))),
    )
    const times: number[] = []
    for (const attempt of [1, 2, 3]) {
      const run = (...words: string[]) =>
        runFile(process.execPath, [
          program,
          '--store',
          `sqlite:${join(directory, `${attempt}.db`)}`,
          ...words,
        ])
      await run('partners', 'create', PARTNER, '--name', 'Acme')
      await run('content', 'import', 'industries', industryFile!)
      const startedAt = performance.now()
      await run('content', 'import', 'profiles', profileFile!)
      times.push((performance.now() - startedAt) / 1000)
    }
    return median(times)
  } finally {
    await rm(directory, { recursive: true })
  }
}
