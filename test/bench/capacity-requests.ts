/** Measures what requests of each kind cost, and a mix of them. */
import { MAX_QUOTA } from '../../core/limits/policies.ts'
import { startServing, stopServing } from '../support/cli-program.ts'
import { analyze, medianOf, type Populated, type PopulatedKey, rounds } from './capacity-costs.ts'
import {
  type Constants,
  type Cost,
  FLUSH_SECONDS,
  type Kind,
  KINDS,
  predict,
  ROWS_PER_FLUSH,
  SERVERS,
} from './capacity-model.ts'
import { load } from './load.ts'
import { privateBytes, residentBytes, usedBy, usedByPostgres } from './processor.ts'
import { COUNTRIES, createRandom, pick } from './profiles.ts'
import { median } from './report.ts'
import { DIRECTORY_PATH, VERIFY_PATH } from './tenant.ts'

/** The status of a few responses while a busy machine pauses for longer than a look-up may take. */
export const PAUSED: readonly string[] = ['503']
const connections = 8
const usedKeys = 2_000
const WORDS = ['workshop', 'bridge', 'glass', 'north', 'river', 'lantern', 'bells', 'institute']

/**
 * Requests over HTTP to several servers, with limits that take one lease for each key, without the counts that it writes. There
 * are more keys than descriptions that verify-key keeps.
 */
export async function measureRequests(
  populated: Populated,
  costs: Constants['costs'],
): Promise<Pick<Constants, 'requests' | 'mixed' | 'server'>> {
  const { flush, flushRow } = costs
  const { server, url, keys } = populated
  const limits = ['key', 'verify', 'signup'].flatMap((name) => ['--limit', `${name}=${MAX_QUOTA}/86400`])
  const database = new URL(url).pathname.slice(1)
  // Those of this process.
  const { length: others } = privateBytes(server.dataFolder, database)
  const served = await Promise.all(
    Array.from({ length: SERVERS }, () => startServing(['serve', '--port', '0', ...limits], url)),
  )
  try {
    const pids = served.map(({ child }) => child.pid!)
    const ports = served.map((each) => Number(new URL(each.url).port))
    const usedByServers = () => pids.reduce((sum, pid) => sum + usedBy(pid), 0)
    const measured: [string, Cost][] = []
    for (const kind of KINDS) {
      let turn = 0
      const request = createRequests(kind, () => keys[turn++ % usedKeys]!)
      // Several signups at once would share a statement.
      const ask = () => load(ports, kind === 'signup' ? SERVERS : connections, 1, request, PAUSED)
      while (turn < 2 * SERVERS * usedKeys) await ask()
      await analyze(url)
      await ask()
      const found: Cost[] = []
      for (let round = 0; round < rounds; round++) {
        const [before, own] = [usedByPostgres(server.dataFolder), usedByServers()]
        const { times: { length }, perSecond } = await ask()
        const rows = Math.min(1, SERVERS * usedKeys / (FLUSH_SECONDS * perSecond))
        const [postgres, node] = [0, 1].map((side) =>
          rows * (flushRow[side]! + flush[side]! / ROWS_PER_FLUSH)
        )
        found.push([
          (usedByPostgres(server.dataFolder) - before) / length - postgres!,
          (usedByServers() - own) / length - node!,
        ])
      }
      measured.push([kind, medianOf(found)])
    }
    const requests = Object.fromEntries(measured) as Constants['requests']
    // So many at once that servers open all of their connections.
    await load(ports, 32 * SERVERS, 1, createRequests('page', () => keys[0]!), PAUSED)
    const backends = privateBytes(server.dataFolder, database)
    const size = {
      bytes: median(pids.map(residentBytes)),
      connections: (backends.length - others) / SERVERS,
      backendBytes: median(backends),
    }
    const among = (servers: number) =>
      measureMix(populated, { costs, requests, server: size }, ports.slice(0, servers), usedByServers)
    return { requests, mixed: { alone: await among(1), inTurn: await among(SERVERS) }, server: size }
  } finally {
    await Promise.all(served.map((each) => stopServing(each)))
  }
}

/** @returns What a mix costs, by what its parts should cost, with the counts that servers write of them. */
async function measureMix(
  { server, keys }: Populated,
  constants: Parameters<typeof predict>[0],
  ports: readonly number[],
  usedByServers: () => number,
): Promise<Cost> {
  const { length: servers } = ports
  const random = createRandom(servers)
  const request = createMixture(() => pick(keys.slice(0, usedKeys), random))
  const factors: Cost[] = []
  for (let round = -rounds; round < rounds; round++) {
    const [before, own] = [usedByPostgres(server.dataFolder), usedByServers()]
    const { times: { length }, perSecond } = await load(ports, 32, 1, request, PAUSED)
    const { primary, microseconds } = predict(constants, {
      ...{ servers, regions: 1, spread: servers, activeKeys: usedKeys, mix, roundTripMs: [0, 0] },
      ...{ requests: perSecond, changes: 0, contentChanges: 0 },
      // Leased before.
      ...{ quotas: { key: MAX_QUOTA, verify: MAX_QUOTA, signup: MAX_QUOTA }, windowSeconds: 86_400 },
    })
    const expected = primary * 1e6 / perSecond
    if (round >= 0) {
      factors.push([
        (usedByPostgres(server.dataFolder) - before) / length / expected,
        (usedByServers() - own) / length / microseconds,
      ])
    }
  }
  return medianOf(factors)
}

/** Other than in the plan, all kinds of requests weigh about the same. */
export const mix: Readonly<Record<Kind, number>> = {
  cached: 0.7,
  page: 0.1,
  search: 0.05,
  verify: 0.1,
  signup: 0.05,
}

/** @returns What makes the bytes of the next request of a mix. */
export function createMixture(nextKey: () => PopulatedKey): () => string {
  const random = createRandom(KINDS.length)
  const makers = KINDS.map((kind) => createRequests(kind, nextKey))
  return () => {
    let left = random()
    return makers[Math.max(0, KINDS.findIndex((kind) => (left -= mix[kind]) < 0))]!()
  }
}

/** @returns What makes the bytes of the next request: pages, searches and signups do not repeat. */
export function createRequests(kind: Kind, nextKey: () => PopulatedKey): () => string {
  const random = createRandom(KINDS.indexOf(kind))
  const get = (query: string) => `GET ${DIRECTORY_PATH}?${query} HTTP/1.1\r\n`
  const post = (path: string, body: object, fields = '') => {
    const text = JSON.stringify(body)
    const type = `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n`
    return [`POST ${path} HTTP/1.1\r\n`, `${type}${fields}\r\n${text}`]
  }
  // No industry has this name: it only makes the target another one.
  const other = () =>
    `&sort=-published_at&country=${pick(COUNTRIES, random)}&industry=music&industry=x${serial++}`

  function parts(partner: string): string[] {
    const page = `partner=${partner}&limit=20`
    switch (kind) {
      case 'cached':
        return [get(page), '\r\n']
      case 'page':
        return [get(page + other()), '\r\n']
      case 'search':
        return [get(`${page}&q=${pick(WORDS, random)}%20${pick(WORDS, random)}${other()}`), '\r\n']
      case 'verify':
        return post(VERIFY_PATH, { partner })
      case 'signup': {
        const body = { partner, email: `someone${serial++}@mail.example`, name: 'Someone', country: 'GB' }
        return post('/service/partner/signups', body, `Idempotency-Key: ${crypto.randomUUID()}\r\n`)
      }
    }
  }

  return () => {
    const { text, partner } = nextKey()
    const [line = '', rest = ''] = parts(partner)
    return `${line}Host: bench\r\nAuthorization: Bearer ${text}\r\n${rest}`
  }
}

let serial = 0
