/**
 * Look-ups of keys that no cache knows, against the same driver on one connection: `select 1`, one after the other, and
 * the query of one key, all of them on their way at once. Rounds are short and alternate.
 */
import postgres from 'postgres'
import { listText } from '../../adapters/stores/postgres/sql.ts'
import type { StoredRow } from '../../adapters/stores/row-format.ts'
import { KEY_FACTS_COLUMNS, KEYS, readKeyFacts } from '../../adapters/stores/tables.ts'
import type { KeyFacts } from '../../core/model.ts'
import type { FactSource } from '../../core/ports/facts.ts'
import { createRandom, PARTNER, pick } from './profiles.ts'
import { figure, median, type Row, times } from './report.ts'
import { keyFor } from './tenant.ts'

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

/** @param ids Of keys that are there. */
export async function lookUpRows(url: string, store: FactSource, ids: readonly string[]): Promise<Row[]> {
  const sql = postgres(url, onePipeline)
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
  const taken = await alternate(
    () => timeEach(async () => check(await ours(pick(ids, random)))),
    () => timeEach(nothing),
  )
  const ratio = median(taken.map(([found, selected]) => found / selected))
  return {
    part: 'postgres',
    what: `cold look-up of one of ${ids.length.toLocaleString('en')} keys`,
    ours: figure(median(taken.map(([found]) => found)), 'µs'),
    against: `select 1 ${figure(median(taken.map(([, selected]) => selected)), 'µs')}`,
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
  const rates = await alternate(rate(ours), rate(plain))
  const ratio = median(rates.map(([batched, single]) => batched / single))
  return {
    part: 'postgres',
    what: `${atOnce} cold look-ups at once`,
    ours: figure(median(rates.map(([batched]) => batched)), '/s'),
    against: `one pipelined connection ${figure(median(rates.map(([, single]) => single)), '/s')}`,
    ratio: times(ratio),
    target: `≥ ${target} ×`,
    met: ratio >= target,
  }
}

/** Adjacent rounds, in alternating order. */
async function alternate(
  one: () => Promise<number>,
  other: () => Promise<number>,
): Promise<readonly (readonly [number, number])[]> {
  const results: (readonly [number, number])[] = []
  for (let round = 0; round < warmUps + rounds; round++) {
    if (round % 2 === 0) results.push([await one(), await other()])
    else {
      const second = await other()
      results.push([await one(), second])
    }
  }
  return results.slice(warmUps)
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

/** Gives the partner of the bench so many keys, without a word in the audit trail. @returns Their ids. */
export async function addKeys(url: string, count: number): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, (_, number) => `bench${number.toString(36).padStart(7, '0')}`)
  const sql = postgres(url, { max: 1 })
  const integers = new Set(['scopes', 'created_at', 'expires_at', 'retires_at', 'last_used_at'])
  const columns = KEYS.columns.map((column, index) =>
    `$${index + 1}::${integers.has(column) ? 'bigint' : 'text'}[]`
  )
  try {
    for (let start = 0; start < count; start += 10_000) {
      const rows = ids.slice(start, start + 10_000).map((id) =>
        KEYS.values(keyFor(id, PARTNER, '0'.repeat(64)))
      )
      await sql.unsafe(
        `INSERT INTO partner_api.partner_key (${KEYS.columns}) SELECT * FROM unnest(${columns})`,
        KEYS.columns.map((_, column) => listText(rows.map((row) => row[column]!))),
      )
    }
    await sql`ANALYZE partner_api.partner_key`
  } finally {
    await sql.end()
  }
  return ids
}
