/**
 * The authenticated page of 20 profiles over HTTP, kept by the service, against peers that have it ready as text.
 * A server has one core, the load another one, with 32 connections and no pipelining. The ratio is that of the
 * servers' processor time for a request, which a busy machine disturbs least; throughput stands beside it.
 */
import { CACHED_TARGET } from '../data/tenant.ts'
import { comparisonRow, compete } from '../http/rounds.ts'
import type { Row } from '../report.ts'

export async function run(): Promise<Row[]> {
  const results = await compete({
    kinds: ['raw', 'ours', 'hono', 'fastify', 'hono-same-work', 'fastify-same-work'],
    profileCount: 500,
    targets: () => () => CACHED_TARGET,
  })
  return [
    comparisonRow('http', results, 'raw', 'raw node:http', 0.9),
    comparisonRow('http', results, 'hono', 'hono, bearerAuth only', 1.5),
    comparisonRow('http', results, 'fastify', 'fastify, bearer-auth only', 1.5),
    comparisonRow('http', results, 'hono-same-work', 'hono, the same work'),
    comparisonRow('http', results, 'fastify-same-work', 'fastify, the same work'),
  ]
}
