/**
 * The authenticated page of 20 profiles over HTTP, cached by the service, against peers that have it ready as text. A
 * server has one core, the load another one, with 32 connections and no pipelining. The ratio is that of the servers'
 * processor time for a request, which a busy machine disturbs least, with that of their throughput.
 */
import { COUNTRIES, createRandom, PARTNER, pick } from './profiles.ts'
import type { Row } from './report.ts'
import { comparisonRow, compete } from './rounds.ts'
import type { ServerKind } from './server.ts'
import { CACHED_TARGET, DIRECTORY_PATH } from './tenant.ts'

export async function runNode(): Promise<Row[]> {
  const results = await compete({
    kinds: ['raw', 'raw-same-fields', 'ours', 'hono', 'fastify', 'hono-same-work', 'fastify-same-work'],
    profileCount: 500,
    targets: () => () => CACHED_TARGET,
  })
  const row = (what: string, subject: ServerKind, peer: ServerKind, target?: number) =>
    comparisonRow('http', what, results, [subject, peer], target)
  return [
    row('raw node:http', 'ours', 'raw', 0.9),
    row('raw node:http with the same header fields', 'ours', 'raw-same-fields'),
    row('hono, bearerAuth only', 'ours', 'hono', 1.5),
    row('fastify, bearer-auth only', 'ours', 'fastify', 1.5),
    row('hono, the same work', 'ours', 'hono-same-work', 1.5),
    row('fastify, the same work', 'ours', 'fastify-same-work', 1.5),
    row('the ceiling: raw with the same header fields, and raw', 'raw-same-fields', 'raw'),
    // No server on node:http can be further ahead of a peer than this.
    row('the ceiling: raw, and hono, bearerAuth only', 'raw', 'hono'),
    row('the ceiling: raw, and fastify, bearer-auth only', 'raw', 'fastify'),
  ]
}

export function runBun(): Promise<Row[]> {
  return runOnFetch({ runtime: 'bun', raw: 'Bun.serve', rawTarget: 0.85, peers: ['elysia', 'hono'] })
}

export function runDeno(): Promise<Row[]> {
  return runOnFetch({ runtime: 'deno', raw: 'Deno.serve', rawTarget: 0.9, peers: ['hono'] })
}

/** A runtime whose server takes fetch handlers, and its peers. */
interface FetchContest {
  readonly runtime: 'bun' | 'deno'
  /** What its own server is called. */
  readonly raw: string
  readonly rawTarget: number
  readonly peers: readonly ('hono' | 'elysia')[]
}

async function runOnFetch({ runtime, raw, rawTarget, peers }: FetchContest): Promise<Row[]> {
  const kinds: ServerKind[] = ['raw', 'raw-same-fields', 'ours', 'fetch']
  for (const peer of peers) kinds.push(peer, `${peer}-same-work`)
  const results = await compete({ runtime, kinds, profileCount: 500, targets: () => () => CACHED_TARGET })
  const row = (what: string, subject: ServerKind, peer: ServerKind, target?: number) =>
    comparisonRow(runtime, what, results, [subject, peer], target)
  return [
    row(`raw ${raw}`, 'ours', 'raw', rawTarget),
    row(`raw ${raw} with the same header fields`, 'ours', 'raw-same-fields'),
    ...peers.flatMap((peer) => [
      row(`${peer}, a bearer key only`, 'ours', peer, 1.4),
      row(`${peer}, the same work`, 'ours', `${peer}-same-work`, 1.4),
    ]),
    row(`api.fetch on ${raw}`, 'ours', 'fetch'),
    row('the ceiling: raw with the same header fields, and raw', 'raw-same-fields', 'raw'),
    ...peers.map((peer) => row(`the ceiling: raw, and ${peer}, a bearer key only`, 'raw', peer)),
  ]
}

/**
 * The page with filters that do not repeat, so that no cached response can be used. Peers check their parameters, ask the
 * same store and write the same profiles, without ETag, quota, signed cursor or Link.
 */
export async function runDistinct(): Promise<Row[]> {
  const results = await compete({
    kinds: ['ours', 'hono-listing', 'fastify-listing'],
    profileCount: 5000,
    targets: createTargets,
  })
  return [
    comparisonRow('distinct', 'hono, bearerAuth only', results, ['ours', 'hono-listing'], 1),
    comparisonRow('distinct', 'fastify, bearer-auth only', results, ['ours', 'fastify-listing'], 1),
  ]
}

/** Six of forty countries in any order: targets hardly ever repeat within a run. */
function createTargets(): () => string {
  const random = createRandom(1)
  return () => {
    const countries = Array.from({ length: 6 }, () => `&country=${pick(COUNTRIES, random)}`).join('')
    const sort = random() < 0.5 ? '' : '&sort=-published_at'
    return `${DIRECTORY_PATH}?partner=${PARTNER}&limit=20${countries}${sort}`
  }
}
