/**
 * The authenticated page of 20 profiles over HTTP, cached by the service, compared with peers that have it ready as text.
 * The server runs on one core and the load generator on another, with 32 connections and no pipelining. The ratio is that
 * of the servers' processor time per request, which a busy machine disturbs least, followed by that of their throughput.
 */
import type { Row } from './report.ts'
import { RUNTIMES } from '../runtimes/runtimes.ts'
import { comparisonRow, compete, sameRequest, tailRow } from './rounds.ts'
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
  const row = (what: string, peer: ServerKind) =>
    comparisonRow('verify-key', what, results, ['ours-verify', peer])
  return [
    row('raw node:http with the same body, bytes and header fields', 'raw-verify'),
    row('hono, the same work', 'hono-verify'),
    row('fastify, the same work', 'fastify-verify'),
  ]
}

/** Lists and checks of keys on Bun and Deno, whose own servers of fetch handlers are the peers. */
export async function runRuntimes(): Promise<Row[]> {
  const rows: Row[] = []
  for (const { name, command } of RUNTIMES.filter(({ name }) => name === 'Bun' || name === 'Deno')) {
    const kinds = ['raw-same-fields', 'ours', 'hono-same-work', 'raw-verify', 'ours-verify', 'hono-verify']
    const results = await compete(kinds as ServerKind[], { ...sameRequest, command })
    const row = (what: string, pair: readonly [ServerKind, ServerKind], target?: number) =>
      comparisonRow(name, what, results, pair, target)
    const isBun = name === 'Bun'
    rows.push(
      row('list: bare server with the same header fields', ['ours', 'raw-same-fields'], isBun ? 0.72 : 0.7),
      row('list: hono, the same work', ['ours', 'hono-same-work'], 1),
      row('verify-key: bare server with the same header fields', ['ours-verify', 'raw-verify']),
      row('verify-key: hono, the same work', ['ours-verify', 'hono-verify']),
      tailRow(name, 'list: p99 of the bare server', results, ['ours', 'raw-same-fields'], isBun ? 1.5 : 3),
    )
  }
  return rows
}
