/**
 * Look-ups of keys that no cache knows: in SQLite with a million keys, in process, and in PostgreSQL on the loopback,
 * against the same driver on one connection: `select 1`, one after the other, and the query of one key, all of them on
 * their way at once. Rounds are short and alternate.
 */
import postgres from 'postgres'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { StoredRow } from '../../adapters/stores/sql/row-format.ts'
import { KEY_FACTS_COLUMNS, readKeyFacts } from '../../adapters/stores/sql/tables.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import type { KeyFacts } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'
import { key as keyOf, partner as partnerOf } from '../contract/store/samples.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'
import { newFile } from '../support/cli-program.ts'
import { createRandom, pick } from './profiles.ts'
import { alternate, figure, median, quantile, type Row, times } from './report.ts'

const sqliteKeys = 1_000_000
const postgresKeys = 100_000
const lookUps = 20_000

export async function run(): Promise<Row[]> {
  const rows = await sqliteRows()
  const reason = hasServer()
  if (reason !== undefined) {
    return [...rows, { part: 'look-ups', what: 'PostgreSQL: not measured', ours: reason }]
  }
  const server = await startServer()
  try {
    const url = await server.createDatabase()
    const store = await openPostgresStore(url)
    try {
      return [...rows, ...await postgresRows(url, store)]
    } finally {
      await store.close()
    }
  } finally {
    await server.close()
  }
}

/** Of pages that SQLite must read, and of pages in its cache. */
async function sqliteRows(): Promise<Row[]> {
  const store = await openSqliteStore(newFile())
  try {
    const ids = await addKeys(store, sqliteKeys)
    const random = createRandom(3)
    const some = () => Array.from({ length: lookUps }, () => pick(ids, random))
    const first = await timeLookUps(store, some())
    await timeLookUps(store, ids)
    const later = await timeLookUps(store, some())
    return [['after opening', first] as const, ['after a look at each', later] as const].map((
      [when, times],
    ) => ({
      part: 'look-ups',
      what: `SQLite among ${sqliteKeys.toLocaleString('en')} keys, ${when}`,
      ours: `p50 ${figure(median(times), 'µs')}, p99 ${figure(quantile(times, 0.99), 'µs')}`,
      target: 'p50 ≤ 6 µs',
      met: median(times) <= 6,
    }))
  } finally {
    await store.close()
  }
}

/** In order, so that each is inserted where the last one was. @returns Their ids. */
async function addKeys(store: Store, count: number): Promise<readonly string[]> {
  const random = createRandom(7)
  const part = () => Math.floor(random() * 2_176_782_336).toString(36).padStart(6, '0')
  const ids = Array.from({ length: count }, () => part() + part()).sort()
  const apply = async (changes: Parameters<Store['apply']>[0]) => {
    const { facts } = await store.revision()
    if (!await store.apply(changes, facts, { actor: 'bench', at: Date.now() })) {
      throw new Error('The store was changed.')
    }
  }
  const partners = Array.from({ length: 1000 }, (_, number) => `partner-${number}`)
  await apply(partners.map((slug) => ({
    type: 'partner.created',
    partner: partnerOf({ slug, name: slug, modules: ['profiles'] }),
  })))
  for (let start = 0; start < ids.length; start += 25_000) {
    await apply(
      ids.slice(start, start + 25_000).map((id, index) => ({
        type: 'key.issued',
        key: keyOf({ id, partner: partners[index % partners.length]!, digest: store.sha256(id) }),
      })),
    )
  }
  return ids
}

/** @returns Microseconds for each id. */
async function timeLookUps(store: Store, ids: readonly string[]): Promise<number[]> {
  const taken: number[] = []
  for (const id of ids) {
    const startedAt = performance.now()
    const found = store.findKey(id)
    // Waiting would take longer than the look-up.
    const facts = found instanceof Promise ? await found : found
    taken.push((performance.now() - startedAt) * 1000)
    check(facts)
  }
  return taken
}

/** One connection with pipelined queries. */
const onePipeline = {
  max: 1,
  max_pipeline: 1000,
  fetch_types: false,
  types: { integer64: { to: 20, from: [20], parse: Number, serialize: String } },
}

type LookUp = (id: string) => Promise<KeyFacts | undefined>

const rounds = 20
const warmUps = 3
const asksInARound = 400
const roundMs = 250
const select = `SELECT ${KEY_FACTS_COLUMNS}
  FROM partner_api.partner_key k JOIN partner_api.partner p ON p.slug = k.partner WHERE k.id = $1`

async function postgresRows(url: string, store: Store): Promise<Row[]> {
  const ids = await addKeys(store, postgresKeys)
  const sql = postgres(url, onePipeline)
  await sql`ANALYZE partner_api.partner_key`
  const ours: LookUp = async (id) => await store.findKey(id)
  const plain: LookUp = async (id) => {
    const [row] = await sql.unsafe(select, [id], { prepare: true }).values()
    return row && readKeyFacts(row as unknown as StoredRow)
  }
  const nothing = async (): Promise<void> => void await sql.unsafe('select 1', [], { prepare: true }).values()
  try {
    return [
      await compareSingle(ours, nothing, ids),
      await compareAtOnce(ours, plain, ids, 64, 1.7),
      await compareAtOnce(ours, plain, ids, 256, 2.3),
    ]
  } finally {
    await sql.end()
  }
}

async function compareSingle(
  ours: LookUp,
  nothing: () => Promise<void>,
  ids: readonly string[],
): Promise<Row> {
  const random = createRandom(5)
  const [found, selected] = await alternate(rounds, warmUps, [
    () => timeEach(async () => check(await ours(pick(ids, random)))),
    () => timeEach(nothing),
  ]) as [number[], number[]]
  const ratio = median(found.map((ours, round) => ours / selected[round]!))
  return {
    part: 'look-ups',
    what: `PostgreSQL, cold look-up of one of ${ids.length.toLocaleString('en')} keys`,
    ours: figure(median(found), 'µs'),
    against: `select 1 ${figure(median(selected), 'µs')}`,
    ratio: `${times(ratio)} the time`,
    target: '≤ 1.4 ×',
    met: ratio <= 1.4,
  }
}

async function compareAtOnce(
  ours: LookUp,
  plain: LookUp,
  ids: readonly string[],
  atOnce: number,
  target: number,
): Promise<Row> {
  const random = createRandom(6)
  const rate = (lookUp: LookUp) => () =>
    countFor(roundMs, atOnce, () => lookUp(pick(ids, random)).then(check))
  const [batched, single] = await alternate(rounds, warmUps, [rate(ours), rate(plain)]) as [
    number[],
    number[],
  ]
  const ratio = median(batched.map((ours, round) => ours / single[round]!))
  return {
    part: 'look-ups',
    what: `PostgreSQL, ${atOnce} cold look-ups at once`,
    ours: figure(median(batched), '/s'),
    against: `one pipelined connection ${figure(median(single), '/s')}`,
    ratio: times(ratio),
    target: `≥ ${target} ×`,
    met: ratio >= target,
  }
}

/** @returns Microseconds for one, of many one after the other: the middle one. */
async function timeEach(ask: () => Promise<void>): Promise<number> {
  const taken: number[] = []
  for (let count = 0; count < asksInARound; count++) {
    const startedAt = performance.now()
    await ask()
    taken.push((performance.now() - startedAt) * 1000)
  }
  return median(taken)
}

/** @returns How many a second. */
async function countFor(milliseconds: number, atOnce: number, ask: () => Promise<void>): Promise<number> {
  const startedAt = performance.now()
  const until = startedAt + milliseconds
  let count = 0
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (performance.now() < until) {
      await ask()
      count++
    }
  }))
  return count * 1000 / (performance.now() - startedAt)
}

function check(facts: KeyFacts | undefined): void {
  if (facts === undefined) throw new Error('A key was not found.')
}
