/**
 * The authenticated page of 20 profiles over HTTP, cached by the service, compared with peers that have it ready as text.
 * The server runs on one core and the load generator on another, with 32 connections and no pipelining. The ratio is that
 * of the servers' processor time per request, which a busy machine disturbs least, followed by that of their throughput.
 */
import type { Row } from './report.ts'
import { comparisonRow, compete, tailRow } from './rounds.ts'
import type { ServerKind, ServerRuntime } from './server.ts'

export async function runNode(): Promise<Row[]> {
  const kinds = ['raw', 'raw-same-fields', 'ours', 'hono', 'fastify', 'hono-same-work', 'fastify-same-work']
  const results = await compete('node', kinds as ServerKind[])
  const row = (what: string, subject: ServerKind, peer: ServerKind, target?: number) =>
    comparisonRow('http', what, results, [subject, peer], target)
  return [
    row('raw node:http', 'ours', 'raw'),
    row('raw node:http with the same header fields', 'ours', 'raw-same-fields', 0.93),
    tailRow(
      'http',
      'p99 of raw node:http with the same header fields',
      results,
      ['ours', 'raw-same-fields'],
      1.3,
    ),
    row('hono, bearerAuth only', 'ours', 'hono', 1.5),
    row('fastify, bearer-auth only', 'ours', 'fastify', 1.5),
    row('hono, the same work', 'ours', 'hono-same-work', 1.5),
    row('fastify, the same work', 'ours', 'fastify-same-work', 1.5),
    row('the ceiling: raw with the same header fields, and raw', 'raw-same-fields', 'raw'),
    // No server on node:http can be faster than this, relative to a peer.
    row('the ceiling: raw, and hono, bearerAuth only', 'raw', 'hono'),
    row('the ceiling: raw, and fastify, bearer-auth only', 'raw', 'fastify'),
  ]
}

/** Checks of keys: a POST with a body, whose responses contain the limits and the instant. */
export async function runVerify(
  runtime: ServerRuntime,
  raw: string,
  peers: readonly ('hono' | 'fastify')[],
): Promise<Row[]> {
  const kinds: ServerKind[] = ['raw-verify', 'ours-verify']
  if (runtime !== 'node') kinds.push('fetch-verify')
  const results = await compete(runtime, [...kinds, ...peers.map((peer): ServerKind => `${peer}-verify`)])
  return kinds.slice(1).flatMap((subject) => {
    const name = subject === 'fetch-verify' ? 'api.fetch: ' : ''
    const row = (what: string, peer: ServerKind, target: number) =>
      comparisonRow(`verify ${runtime}`, name + what, results, [subject, peer], target)
    return [
      row(`raw ${raw} with the same body, bytes and header fields`, 'raw-verify', 0.6),
      ...peers.map((peer) => row(`${peer}, the same work`, `${peer}-verify`, 1.5)),
    ]
  })
}

/** What metrics cost. The first row compares two servers without metrics: it shows how precise the others are. */
export async function runMetrics(): Promise<Row[]> {
  const kinds = ['ours', 'ours-again', 'ours-metrics', 'ours-metrics-by-partner'] as const
  const results = await compete('node', kinds)
  const row = (what: string, subject: ServerKind, target?: number) =>
    comparisonRow('metrics', what, results, [subject, 'ours'], target)
  return [
    row('off, against another server with metrics off', 'ours-again'),
    row('on, against off', 'ours-metrics', 0.97),
    row('on, by partner, against off', 'ours-metrics-by-partner', 0.97),
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
  /** The name of its own server. */
  readonly raw: string
  readonly rawTarget: number
  readonly peers: readonly ('hono' | 'elysia')[]
}

async function runOnFetch({ runtime, raw, rawTarget, peers }: FetchContest): Promise<Row[]> {
  const kinds: ServerKind[] = ['raw', 'raw-same-fields', 'ours', 'fetch']
  // The service uses node:http there.
  if (runtime === 'deno') kinds.push('raw-node-http')
  for (const peer of peers) kinds.push(peer, `${peer}-same-work`)
  const results = await compete(runtime, kinds)
  const row = (what: string, subject: ServerKind, peer: ServerKind, target?: number) =>
    comparisonRow(runtime, what, results, [subject, peer], target)
  return [
    row(`raw ${raw}`, 'ours', 'raw'),
    row(`raw ${raw} with the same header fields`, 'ours', 'raw-same-fields', rawTarget),
    ...peers.flatMap((peer) => [
      row(`${peer}, a bearer key only`, 'ours', peer, 1.4),
      row(`${peer}, the same work`, 'ours', `${peer}-same-work`, runtime === 'deno' ? 1.3 : 1.4),
    ]),
    ...runtime === 'deno'
      ? [
        row(
          'the ceiling: raw node:http, and raw, with the same header fields',
          'raw-node-http',
          'raw-same-fields',
        ),
      ]
      : [],
    row(`api.fetch on ${raw}: raw with the same header fields`, 'fetch', 'raw-same-fields', rawTarget),
    ...peers.map((peer) =>
      row(
        `api.fetch on ${raw}: ${peer}, the same work`,
        'fetch',
        `${peer}-same-work`,
        runtime === 'deno' ? 1.3 : 1.4,
      )
    ),
    row('the ceiling: raw with the same header fields, and raw', 'raw-same-fields', 'raw'),
    ...peers.map((peer) => row(`the ceiling: raw, and ${peer}, a bearer key only`, 'raw', peer)),
  ]
}
