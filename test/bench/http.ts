/**
 * The authenticated page of 20 profiles over HTTP, cached by the service, compared with peers that have it ready as text.
 * The server runs on one core and the load generator on another, with 32 connections and no pipelining. The ratio is that
 * of the servers' processor time per request, which a busy machine disturbs least, followed by that of their throughput.
 */
import type { Row } from './report.ts'
import { comparisonRow, compete, tailRow } from './rounds.ts'
import type { ServerKind } from './server.ts'

export async function runList(): Promise<Row[]> {
  const kinds = ['raw', 'raw-same-fields', 'ours', 'hono', 'fastify', 'hono-same-work', 'fastify-same-work']
  const results = await compete(kinds as ServerKind[])
  const row = (what: string, subject: ServerKind, peer: ServerKind, target?: number) =>
    comparisonRow('list', what, results, [subject, peer], target)
  return [
    row('raw node:http', 'ours', 'raw'),
    row('raw node:http with the same header fields', 'ours', 'raw-same-fields', 0.93),
    tailRow(
      'list',
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
export async function runVerify(): Promise<Row[]> {
  const results = await compete(['raw-verify', 'ours-verify', 'hono-verify', 'fastify-verify'])
  const row = (what: string, peer: ServerKind, target: number) =>
    comparisonRow('verify-key', what, results, ['ours-verify', peer], target)
  return [
    row('raw node:http with the same body, bytes and header fields', 'raw-verify', 0.6),
    row('hono, the same work', 'hono-verify', 1.5),
    row('fastify, the same work', 'fastify-verify', 1.5),
  ]
}
