/**
 * The authenticated page of 20 profiles over HTTP, kept by the service, against peers that have it ready as text.
 * A server has one core, the load another one, with 32 connections and no pipelining. The ratio is that of the
 * servers' processor time for a request, which a busy machine disturbs least; throughput stands beside it.
 */
import { CACHED_TARGET } from '../data/tenant.ts'
import type { ServerKind } from '../http/kinds.ts'
import { comparisonRow, compete } from '../http/rounds.ts'
import type { Row } from '../report.ts'

export async function run(): Promise<Row[]> {
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
