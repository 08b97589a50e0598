/**
 * `serve --workers 2` against one process on one SQLite file, on searches that no cache has. The load generator needs a
 * core too: requests for a second of processor time say what the workers would do without it.
 */
import { readFileSync } from 'node:fs'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { until } from '../postgres/until.ts'
import { newFile, startServing, stopServing } from '../support/cli-program.ts'
import { PARTNER } from '../support/partner.ts'
import { load } from './load.ts'
import { COUNTRIES, INDUSTRIES } from './profiles.ts'
import { alternate, median, type Row } from './report.ts'
import { DIRECTORY_PATH, fill, issueKey } from './tenant.ts'

const rounds = 3
const seconds = 4

interface Speed {
  readonly perSecond: number
  readonly perCpuSecond: number
}

export async function run(): Promise<Row[]> {
  const file = newFile()
  const store = await openSqliteStore(file)
  await fill(store, 2_000)
  const key = await issueKey(store)
  await store.close()
  const speeds = await alternate(rounds, 0, [1, 2].map((workers) => () => measure(file, key, workers)))
  return [
    row('searches/s, the load generator on the same cores', speeds, ({ perSecond }) => perSecond, 1),
    row('searches in a second of processor time, times two', speeds, ({ perCpuSecond }) => perCpuSecond, 2),
  ]
}

function row(
  what: string,
  speeds: readonly Speed[][],
  read: (speed: Speed) => number,
  factor: number,
): Row {
  const [one, two] = [median(speeds[0]!.map(read)), median(speeds[1]!.map(read)) * factor]
  const target = factor === 2 ? {} : { target: '≥ 1.6', met: two / one >= 1.6 }
  const figures = {
    ours: two.toFixed(0),
    against: `one process ${one.toFixed(0)}`,
    ratio: (two / one).toFixed(2),
  }
  return { part: 'workers', what: `two workers: ${what}`, ...figures, ...target }
}

async function measure(file: string, key: string, workers: number): Promise<Speed> {
  const args = ['serve', '--workers', `${workers}`, '--port', '0', '--limit', 'key=0']
  const served = await startServing(args, `sqlite:${file}`)
  let log = served.words
  served.child.stderr.on('data', (text: string) => log += text)
  try {
    const pidsOf = () => Array.from(log.matchAll(/"worker_started".*"pid":(\d+)/g), ([, pid]) => Number(pid))
    if (workers > 1) await until(() => pidsOf().length === workers, 'the workers to start')
    const pids = workers === 1 ? [served.child.pid!] : pidsOf()
    const port = Number(new URL(served.url).port)
    const search = createSearches(key)
    await load([port], 16, 1, search)
    const cpuBefore = cpuSeconds(pids)
    const { times, perSecond } = await load([port], 16, seconds, search)
    return { perSecond, perCpuSecond: times.length / (cpuSeconds(pids) - cpuBefore) }
  } finally {
    await stopServing(served)
  }
}

/** 10,000 searches in turn: more than a cache holds. */
function createSearches(key: string): () => string {
  let number = 0
  return () => {
    number++
    const country = COUNTRIES[number % COUNTRIES.length]
    const industry = INDUSTRIES[number % INDUSTRIES.length]!.slug
    const limit = 10 + Math.floor(number / 120) % 91
    const query = `country=${country}&industry=${industry}&limit=${limit}`
    return `GET ${DIRECTORY_PATH}?partner=${PARTNER}&${query} HTTP/1.1\r\nHost: bench\r\n` +
      `Authorization: Bearer ${key}\r\n\r\n`
  }
}

/** Seconds of processor time that the processes have used. */
function cpuSeconds(pids: readonly number[]): number {
  const ticks = pids.map((pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /, '').split(' ')
    return Number(fields[11]) + Number(fields[12])
  })
  return ticks.reduce((sum, each) => sum + each, 0) / 100
}
