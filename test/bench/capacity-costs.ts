/** Measures what the capacity model is made of: processor time, memory and disk of each kind of work. */
import { cpus } from 'node:os'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import postgres from 'postgres'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import { mintKey } from '../../core/keys/format.ts'
import { MODULE_NAMES, SCOPES } from '../../core/model.ts'
import type { LeaseRequest } from '../../core/ports/quotas.ts'
import type { Store } from '../../core/ports/store.ts'
import { key, partner, usageCount } from '../contract/store/samples.ts'
import type { PostgresServer } from '../postgres/server.ts'
import { type Constants, type Cost, HEARTBEAT_SECONDS, SERVERS } from './capacity-model.ts'
import { usedByPostgres } from './processor.ts'
import { createRandom, pick } from './profiles.ts'
import { median } from './report.ts'
import { DIRECTORY_PATH, exchangeFor, fill } from './tenant.ts'

/** A store with keys of many partners, and their texts. */
export interface Populated {
  readonly server: PostgresServer
  readonly url: string
  readonly store: Store
  readonly keys: readonly PopulatedKey[]
}

export interface PopulatedKey {
  readonly id: string
  readonly text: string
  readonly partner: string
}

const PARTNERS = 200
const KEYS = 20_000
const PROFILES = 20_000

export async function populate(server: PostgresServer): Promise<Populated> {
  const url = await server.createDatabase()
  const store = await openPostgresStore(url)
  const partners = Array.from({ length: PARTNERS }, (_, number) => `partner-${number}`)
  const apply = async (changes: Parameters<Store['apply']>[0]) => {
    const { facts } = await store.revision()
    if (!await store.apply(changes, facts, { actor: 'bench', at: Date.now() })) {
      throw new Error('Not applied.')
    }
  }
  await apply(partners.map((slug) => ({
    type: 'partner.created',
    partner: partner({ slug, name: slug, modules: [...MODULE_NAMES] }),
  })))
  const minted = Array.from({ length: KEYS }, () => mintKey(store.settings.keyPrefix, 'live'))
  const keys = minted.map(({ id, text }, index) => ({ id, text, partner: partners[index % PARTNERS]! }))
  await apply(keys.map(({ id, text, partner }) => ({
    type: 'key.issued',
    key: key({ id, partner, digest: store.sha256(text), scopes: [...SCOPES] }),
  })))
  await fill(store, PROFILES)
  await analyze(url)
  return { server, url, store, keys }
}

/** As autovacuum does once a minute, but for empty tables, which would be scanned until the next time. */
export async function analyze(url: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  const tables = await sql`SELECT oid::regclass AS name FROM pg_class
    WHERE relnamespace = 'partner_api'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0`
  await sql.unsafe(`VACUUM ANALYZE ${tables.map(({ name }) => name).join()}`)
  await sql.end()
}

export const rounds = 5
const roundMs = 400

/** Measures the work of a statement or request, one after another. */
async function costOf({ server }: Populated, work: () => Promise<unknown> | unknown): Promise<Cost> {
  const costs: Cost[] = []
  // The first round warms up.
  for (let round = -1; round < rounds; round++) {
    const [before, own] = [usedByPostgres(server.dataFolder), process.cpuUsage()]
    let count = 0
    for (const until = performance.now() + roundMs; performance.now() < until; count++) await work()
    const { user, system } = process.cpuUsage(own)
    const postgres = (usedByPostgres(server.dataFolder) - before) / count
    if (round >= 0) costs.push([postgres, (user + system) / count])
  }
  return medianOf(costs)
}

export function medianOf(costs: readonly Cost[]): Cost {
  return [median(costs.map(([postgres]) => postgres)), median(costs.map(([, server]) => server))]
}

/** Of work that costs so much a statement and a row: the cost with one row, and with many. */
function split(one: Cost, many: Cost, rows: number): [statement: Cost, row: Cost] {
  const row: Cost = [(many[0] - one[0]) / (rows - 1), (many[1] - one[1]) / (rows - 1)]
  return [[one[0] - row[0], one[1] - row[1]], row]
}

export async function measureCosts(populated: Populated): Promise<Constants['costs']> {
  const { keys, url } = populated
  // Backends of several servers, which are not always the last to have run.
  const stores = await Promise.all(Array.from({ length: SERVERS }, () => openPostgresStore(url)))
  let turn = 0
  const next = () => stores[turn++ % SERVERS]!
  const random = createRandom(11)
  const some = () => pick(keys, random)
  const many = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make)
  let number = 0

  const look = (count: number) => () => {
    const store = next()
    return Promise.all(many(count, () => store.findKey(some().id)))
  }
  // Two statements are on their way before the rest is put into one.
  const [lookUp, lookUpRow] = split(await costOf(populated, look(1)), await costOf(populated, look(402)), 402)

  const lease = (request: Partial<LeaseRequest>) => () =>
    next().quotas!.leaseQuota({
      ...{ policy: 'key', subject: some().id, quota: 1_000_000, windowSeconds: 600, wanted: 12, waiting: 1 },
      ...request,
    })
  const openWindow = await costOf(populated, () => lease({ policy: 'signup', subject: `new-${number++}` })())
  for (const { id } of keys) await lease({ subject: id })()
  await analyze(populated.url)

  const count = () => {
    const { id, partner } = some()
    return usageCount({ keyId: id, partner, day: '2026-11-20', endpoint: 'profiles' })
  }
  const flush = (rows: number) => () =>
    next().recordUsage(many(rows, count), `use_${number++}_${process.pid}`, '2026-01-01')
  const [flushed, flushRow] = split(
    await costOf(populated, flush(1)),
    await costOf(populated, flush(100)),
    100,
  )
  const use = (rows: number) => () => next().recordKeyUses(new Map(many(rows, () => [some().id, Date.now()])))
  const [used, useRow] = split(await costOf(populated, use(1)), await costOf(populated, use(500)), 500)

  const measured = {
    poll: await costOf(populated, () => next().revision()),
    ...{ lookUp, lookUpRow, openWindow, lease: await costOf(populated, lease({})) },
    ...{ flush: flushed, flushRow, use: used, useRow },
    connect: await costOf(populated, async () => {
      const client = postgres(populated.url, { max: 1, fetch_types: false })
      await client`SELECT 1`
      await client.end()
    }),
    change: await costOf(populated, async () => {
      const store = next()
      const { facts } = await store.revision()
      const [{ id, partner }, minted] = [some(), mintKey('spk', 'live')]
      await store.apply(
        [{
          type: 'key.issued',
          key: key({ id: minted.id, partner, digest: store.sha256(id), scopes: [...SCOPES] }),
        }],
        facts,
        { actor: 'bench', at: Date.now() },
      )
    }),
    // The last: on a busy machine, listeners go on after their measurement.
    ...await measureConfirmations(populated),
  }
  await Promise.all(stores.map((each) => each.close()))
  return measured
}

/** What replicas write: a confirmation of each change, and heartbeats, which count those that are live. */
async function measureConfirmations(populated: Populated) {
  const { store, server, url } = populated
  const seconds = 4

  /** The cost of a confirmation when each poll has a change, or of a heartbeat when none has. */
  async function costOfWrite(replicas: number, everyMs: number, hasChanges: boolean): Promise<Cost> {
    let polls = 0
    const members = Array.from({ length: replicas }, (_, index) =>
      store.replicas!.register({
        ...{ name: `server-${index}`, leaseMs: 1_000, revalidateEveryMs: everyMs },
        revalidate() {
          polls++
          return Promise.resolve({ facts: hasChanges ? `${polls}` : '', content: '' })
        },
      }))
    for (const member of members) await member.registered()
    const costs: Cost[] = []
    for (let round = -1; round < 3; round++) {
      const [before, own, first] = [usedByPostgres(server.dataFolder), process.cpuUsage(), polls]
      await delay(seconds * 1_000)
      const { user, system } = process.cpuUsage(own)
      const beats = replicas * seconds / (HEARTBEAT_SECONDS + everyMs / 2_000)
      const writes = hasChanges ? polls - first : beats
      const used = usedByPostgres(server.dataFolder) - before
      if (round >= 0) costs.push([used / writes, (user + system) / writes])
    }
    await Promise.all(members.map((member) => member.deregister()))
    return medianOf(costs)
  }

  const servers = 1_000
  const confirm = await costOfWrite(10, 10, true)
  const beat = await costOfWrite(servers, 100, false)
  const listeners = 50
  const clients = Array.from({ length: listeners }, () => postgres(url, { max: 1 }))
  for (const client of clients) await client.listen('bench', () => {})
  const [client] = clients
  const [quiet, heard] = [
    await costOf(populated, () => client!.unsafe('NOTIFY nobody')),
    await costOf(populated, () => client!.unsafe('NOTIFY bench')),
  ]
  await Promise.all(clients.map((each) => each.end()))
  return {
    confirm,
    beatPerServer: [Math.max(0, (beat[0] - confirm[0]) / servers), 0] as Cost,
    notify: [Math.max(0, (heard[0] - quiet[0]) / listeners), 0] as Cost,
  }
}

/** Bytes on the heap for each key that a server has cached, of one partner and of a partner each. */
export async function measureMemory(): Promise<Constants['memory']> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const store = createMemoryStore()
  await fill(store, 20)
  const count = 4_000
  const minted = Array.from({ length: 2 * count }, () => mintKey(store.settings.keyPrefix, 'live'))
  const digests = new Map(minted.map(({ id, text }) => [id, store.sha256(text)]))
  let slug = 'shared'
  const { handle } = createPartnerApi({
    store: {
      ...store,
      findKey: (id) => ({
        key: key({ id, partner: slug, digest: digests.get(id)!, scopes: [...SCOPES] }),
        partner: partner({ slug, name: slug, modules: [...MODULE_NAMES] }),
      }),
      recordKeyUses() {},
      recordUsage() {},
    },
  })
  async function bytesOf(keys: readonly { readonly text: string }[], slugOf: (index: number) => string) {
    collect()
    const before = process.memoryUsage().heapUsed
    for (const [index, { text }] of keys.entries()) {
      slug = slugOf(index)
      const { status } = await handle(exchangeFor(`${DIRECTORY_PATH}?partner=${slug}&limit=1`, text))
      if (status !== 200) throw new Error(`Status ${status}`)
    }
    collect()
    return (process.memoryUsage().heapUsed - before) / keys.length
  }
  await bytesOf(minted.slice(0, 1), () => 'shared')
  return {
    key: await bytesOf(minted.slice(0, count), () => 'shared'),
    keyAndPartner: await bytesOf(minted.slice(count), (index) => `partner-${index}`),
  }
}

/** Bytes on disk for each row, with its indexes. */
export async function measureDisk({ url }: Populated): Promise<Constants['disk']> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    const bytes = async (table: string) => {
      await sql.unsafe(`VACUUM ANALYZE partner_api.${table}`)
      const [row] = await sql.unsafe(
        `SELECT pg_total_relation_size('partner_api.${table}') / greatest(count(*), 1) AS bytes FROM partner_api.${table}`,
      )
      return Number(row!['bytes'])
    }
    return {
      key: await bytes('partner_key'),
      usage: await bytes('key_usage'),
      signup: await bytes('signup') + await bytes('idempotency'),
      profile: await bytes('profile') + await bytes('listing'),
    }
  } finally {
    await sql.end()
  }
}

export const machine = (): string => `${cpus()[0]?.model.trim()}, Node ${process.versions.node}`
