/** The tables of `docs/capacity.md`: what work costs, and what larger installations need by the model. */
import { readFileSync, writeFileSync } from 'node:fs'
import {
  amongOthers,
  type Constants,
  type Cost,
  type Kind,
  predict,
  SERVERS,
  simulateColdStart,
  simulateRevocation,
  type Traffic,
} from './capacity-model.ts'
import { quantile, type Row } from './report.ts'

/** The constants that the docs are made from, and how the model was held against measurements with them. */
export interface Kept extends Constants {
  readonly validation: readonly Row[]
}

const constantsFile = new URL('capacity.json', import.meta.url)
const docsPage = new URL('../../docs/capacity.md', import.meta.url)

export function readConstants(): Kept {
  return JSON.parse(readFileSync(constantsFile, 'utf8'))
}

/** Keeps the constants, and writes the tables of the docs. */
export function save(kept: Kept): void {
  writeFileSync(constantsFile, `${JSON.stringify(kept, null, 2)}\n`)
  let page = readFileSync(docsPage, 'utf8')
  for (const [name, rows] of Object.entries(docsTables(kept))) {
    const table = new RegExp(`(<!-- ${name} -->\\n.*\\n.*\\n)[^]*(<!-- /${name} -->)`)
    page = page.replace(table, (_, head, end) => `${head}${rows.join('\n')}\n${end}`)
  }
  writeFileSync(docsPage, page)
}

/** The rows of the tables in `docs/capacity.md`, by the names of the tables. */
export function docsTables(kept: Kept): Record<'costs' | 'plan' | 'validation', string[]> {
  const lines = (rows: readonly Row[]) =>
    rows.map(({ what, ours, against, ratio }) =>
      `| ${[what, ours, against, ratio].filter(Boolean).join(' | ')} |`
    )
  return { costs: lines(costRows(kept)), plan: lines(planRows(kept)), validation: lines(kept.validation) }
}

/** What partners send: mostly lists that are cached. */
const mix: Readonly<Record<Kind, number>> = {
  cached: 0.84,
  page: 0.1,
  search: 0.03,
  verify: 0.02,
  signup: 0.01,
}
/** A primary, of whose processors half may be busy. */
const cores = 16
const mostBusy = 0.5
const standbyLagMs = 20

/** Servers, regions, keys and requests a second. */
const installations = [
  [2, 1, 1e5, 1e3],
  [10, 1, 1e6, 1e4],
  [100, 1, 1e6, 1e5],
  [100, 3, 1e7, 1e5],
  [1_000, 1, 1e7, 1e5],
  [1_000, 3, 1e8, 1e6],
  [1_000, 5, 1e9, 1e6],
] as const

/** A row for each installation. */
export function planRows(measured: Constants): Row[] {
  // A primary serves many servers in turn.
  const constants = amongOthers(measured, SERVERS)
  return installations.map(([servers, regions, keys, requests]) => {
    const anyServer: Traffic = {
      ...{ servers, regions, requests, mix, spread: servers },
      // One of a hundred keys is in use at a time, with a request a second at most; each is changed three times a year.
      activeKeys: Math.max(keys / 100, requests),
      changes: keys / 1e7,
      contentChanges: 1 / 60,
    }
    // A balancer in each region goes by the key.
    const byKey = { ...anyServer, spread: regions }
    const withStandbys = { ...byKey, standbyLagMs }
    const databases = fewestDatabases(constants, withStandbys)
    const part = partOf(withStandbys, databases)
    const { primary, connections } = predict(constants, part)
    const rest = { cores, busy: primary / cores }
    const cells = [
      ...[anyServer, byKey, withStandbys].map((traffic) => processors(predict(constants, traffic).primary)),
      processors(predict(constants, withStandbys).standby),
      String(databases),
      number(connections),
      `${number(quantile(simulateRevocation(constants, part, rest), 0.99))} ms`,
      `${number(simulateColdStart(constants, part, rest))} s`,
    ]
    return {
      part: 'plan',
      what: [number(servers), regions, power(keys), power(requests)].join(' | '),
      ours: cells.join(' | '),
    }
  })
}

/** Databases, each with its share of the partners and servers, whose primaries are not too busy. */
function fewestDatabases(constants: Constants, traffic: Traffic): number {
  let databases = 1
  while (predict(constants, partOf(traffic, databases)).primary > cores * mostBusy) databases++
  return databases
}

function partOf(traffic: Traffic, databases: number): Traffic {
  const { servers, requests, activeKeys, changes } = traffic
  return {
    ...traffic,
    servers: Math.ceil(servers / databases),
    requests: requests / databases,
    activeKeys: activeKeys / databases,
    changes: changes / databases,
  }
}

const costNames: readonly (readonly [name: string, of: (constants: Constants) => Cost])[] = [
  ['list that is cached', ({ requests }) => requests.cached],
  ['page of a list that is not cached', ({ requests }) => requests.page],
  ['search', ({ requests }) => requests.search],
  ['`verify-key`', ({ requests }) => requests.verify],
  ['signup', ({ requests }) => requests.signup],
  [
    'look-up of a key',
    ({ costs }) => [costs.lookUp[0] + costs.lookUpRow[0], costs.lookUp[1] + costs.lookUpRow[1]],
  ],
  ['look-up among many at once', ({ costs }) => costs.lookUpRow],
  ['lease of a limit', ({ costs }) => costs.lease],
  ['first lease of a window', ({ costs }) => costs.openWindow],
  ['count of requests, of a key and endpoint', ({ costs }) => costs.flushRow],
  ['last use of a key', ({ costs }) => costs.useRow],
  ['poll of the revision', ({ costs }) => costs.poll],
  ['confirmation of a change', ({ costs }) => costs.confirm],
  ['change of a key', ({ costs }) => costs.change],
  ['connection that is opened', ({ costs }) => costs.connect],
]

/** A row for each piece of work. */
export function costRows(constants: Constants): Row[] {
  return costNames.map(([name, of]) => {
    const [postgres, server] = of(constants)
    return { part: 'costs', what: name, ours: `${microseconds(server)} | ${microseconds(postgres)}` }
  })
}

const microseconds = (cost: number): string => cost < 0.5 ? '–' : `${number(cost)} µs`

const processors = (count: number): string => count < 0.1 ? '< 0.1' : number(count)

/** Two significant digits: the model is not better. */
const number = (value: number): string => Number(value.toPrecision(2)).toLocaleString('en')

const power = (value: number): string => `10${'⁰¹²³⁴⁵⁶⁷⁸⁹'[Math.log10(value)]}`
