/**
 * How much fits: measures what each kind of work costs, predicts what servers and their primary have to do for some traffic,
 * compares that with real servers, and prints what larger installations need. `docs/capacity.md` has the same tables, from
 * the constants in `capacity.json`. Needs Linux.
 *
 *   npm run bench -- capacity            measures, validates and prints
 *   npm run bench -- capacity --save     writes the constants to capacity.json and the tables to docs/capacity.md, too
 */
import process from 'node:process'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'
import { startServing, stopServing } from '../support/cli-program.ts'
import {
  analyze,
  machine,
  measureCosts,
  measureDisk,
  measureMemory,
  populate,
  type Populated,
} from './capacity-costs.ts'
import { amongOthers, type Constants, type Cost, predict, SERVERS } from './capacity-model.ts'
import { costRows, planRows, save } from './capacity-plan.ts'
import { createMixture, createRequests, measureRequests, mix, PAUSED } from './capacity-requests.ts'
import { load } from './load.ts'
import { usedBy, usedByPostgres } from './processor.ts'
import { createRandom, pick } from './profiles.ts'
import { figure, median, type Row, times } from './report.ts'

export async function run(): Promise<Row[]> {
  const reason = process.platform === 'linux' ? hasServer() : 'Processor time is read from /proc.'
  if (reason !== undefined) return [{ part: 'capacity', what: 'not measured', ours: reason }]
  const memory = await measureMemory()
  const server = await startServer({ maxConnections: 300 })
  try {
    const populated = await populate(server)
    try {
      const costs = await measureCosts(populated)
      const measured: Constants = {
        date: new Date().toISOString().slice(0, 10),
        machine: machine(),
        ...await measureRequests(populated, costs),
        costs,
        memory,
        disk: await measureDisk(populated),
      }
      const constants = JSON.parse(JSON.stringify(measured, rounded)) as Constants
      const validation: Row[] = []
      for (const servers of [1, 2, 4]) validation.push(...await validate(populated, constants, servers))
      if (process.argv.includes('--save')) save({ ...constants, validation })
      return [...costRows(constants), ...sizeRows(constants), ...validation, ...planRows(constants)]
    } finally {
      await populated.store.close()
    }
  } finally {
    await server.close()
  }
}

/** Three significant digits. */
const rounded = (_name: string, value: unknown) =>
  typeof value === 'number' ? Number(value.toPrecision(3)) : value

function sizeRows({ mixed, server, memory, disk }: Constants): Row[] {
  const bytes = (what: string, size: number): Row => ({
    part: 'sizes',
    what,
    ours: `${size.toLocaleString('en')} B`,
  })
  const factor = (what: string, [ofPrimary, ofServer]: Cost): Row => ({
    part: 'mix',
    what: `a mix of requests by the sum of its parts, ${what}`,
    ours: `${times(ofServer)} of a server, ${times(ofPrimary)} of the primary`,
  })
  return [
    factor('on one server', mixed.alone),
    factor(`on ${SERVERS} that take turns`, mixed.inTurn),
    bytes('memory of a server under load', server.bytes),
    bytes('memory of PostgreSQL for a connection', server.backendBytes),
    { part: 'sizes', what: 'connections of a server', ours: String(server.connections) },
    bytes('memory of a server for a cached key', memory.key),
    bytes('memory of a server for a cached key of a partner of its own', memory.keyAndPartner),
    ...Object.entries(disk).map(([table, size]) => bytes(`a row on disk with its indexes: ${table}`, size)),
  ]
}

/** Default quotas in shorter windows, so that many begin and end. */
const quotas = { key: 600, verify: 30, signup: 20 }
const windowSeconds = 10
const activeKeys = 3_000
/** Of each server, until its code is compiled. */
const warmUpRequests = 10_000
const validationRounds = 5
const roundSeconds = 5
const changeEveryMs = 4_000

/** Servers under a mix of requests, next to what the model predicts for the same rate. */
async function validate(
  { server, url, store, keys }: Populated,
  constants: Constants,
  servers: number,
): Promise<readonly Row[]> {
  const limits = Object.entries(quotas).flatMap((
    [name, quota],
  ) => ['--limit', `${name}=${quota}/${windowSeconds}`])
  const served = await Promise.all(
    Array.from({ length: servers }, () => startServing(['serve', '--port', '0', ...limits], url)),
  )
  try {
    const ports = served.map((each) => Number(new URL(each.url).port))
    const random = createRandom(servers)
    const active = keys.slice(0, activeKeys)
    const request = createMixture(() => pick(active, random))
    // Each server meets each key once: what the first requests cost is not repeated.
    for (const port of ports) {
      let next = 0
      const first = createRequests('cached', () => active[next++ % activeKeys]!)
      while (next < activeKeys) await load([port], 16, 0.5, first, PAUSED)
    }
    await analyze(url)
    for (let warm = 0; warm < warmUpRequests * servers;) {
      warm += (await load(ports, 32, 2, request, PAUSED)).times.length
    }
    const usedSoFar = () => ({
      postgres: usedByPostgres(server.dataFolder),
      servers: served.map(({ child }) => usedBy(child.pid!)).reduce((sum, each) => sum + each, 0),
    })
    const administration = createKeyAdministration(store, { actor: 'bench' })
    const changing = setInterval(
      () => void administration.issue({ partner: keys[0]!.partner, name: 'New', environment: 'live' }),
      changeEveryMs,
    )
    const rounds: { readonly cost: number; readonly rows: readonly Row[] }[] = []
    while (rounds.length < validationRounds) {
      const [before, startedAt] = [usedSoFar(), performance.now()]
      const { length } = (await load(ports, 32, roundSeconds, request, PAUSED)).times
      const seconds = (performance.now() - startedAt) / 1000
      const after = usedSoFar()
      const { primary, microseconds } = predict(amongOthers(constants, servers), {
        ...{ servers, regions: 1, spread: servers, activeKeys, mix, quotas, windowSeconds },
        ...{
          requests: length / seconds,
          changes: 1_000 / changeEveryMs,
          contentChanges: 0,
          roundTripMs: [0, 0],
        },
      })
      const [used, usedByServers] = [after.postgres - before.postgres, after.servers - before.servers]
      const name = `${servers} server${servers > 1 ? 's' : ''}, ${figure(length / seconds, 'requests/s')}`
      const compare = (what: string, measured: number, predicted: number, unit: string): Row => ({
        part: 'validation',
        what: `${name}: ${what}`,
        ours: figure(measured, unit),
        against: figure(predicted, unit),
        ratio: times(predicted / measured),
        target: '0.75–1.25 ×',
        met: Math.abs(predicted / measured - 1) <= 0.25,
      })
      rounds.push({
        cost: (used + usedByServers) / length,
        rows: [
          compare('processor time of the primary', used / seconds / 1_000, primary * 1_000, 'ms/s'),
          compare('requests a second of a processor', length / usedByServers * 1e6, 1e6 / microseconds, '/s'),
        ],
      })
    }
    clearInterval(changing)
    const middle = median(rounds.map(({ cost }) => cost))
    return rounds.find(({ cost }) => cost === middle)!.rows
  } finally {
    await Promise.all(served.map((each) => stopServing(each)))
  }
}
