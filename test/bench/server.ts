/**
 * One server in its own process, so that its processor time can be measured. Reports its port and, on request, the
 * processor time that it has used.
 */
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import type { ServeOptions } from '../../adapters/runtimes/node.ts'
import type { RunningServer, ServableApi } from '../../adapters/runtimes/server.ts'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { honoReady, honoSameWork, honoVerify } from './hono.ts'
import { createService, fill, issueKey, readyAnswer, verifyExchangeFor } from './tenant.ts'

export type ServerRuntime = 'node' | 'bun' | 'deno'

/**
 * A server. A peer without a suffix only checks the key and sends the page. `raw` is the server of the runtime, `fetch`
 * the service as a handler on it, `ours-again` a second server like `ours`. Fastify runs on Node, Elysia on Bun. Those that
 * end in `verify` are sent checks of keys.
 */
export type ServerKind =
  | 'ours'
  | `ours-${'again' | 'verify' | 'metrics' | 'metrics-by-partner'}`
  | `fetch${'' | '-verify'}`
  | 'raw'
  | 'raw-node-http'
  | `raw-${'same-fields' | 'verify'}`
  | `${'hono' | 'fastify'}${'' | '-same-work' | '-verify'}`
  | `elysia${'' | '-same-work'}`

type Handler = (request: Request, info: object) => Response | Promise<Response>

/** The servers of Bun and Deno. */
interface FetchRuntime {
  readonly Bun?: {
    serve(
      options: { port: number; hostname: string; development: boolean; fetch: Handler },
    ): { readonly port: number }
  }
  readonly Deno?: {
    serve(
      options: { port: number; hostname: string; automaticCompression: boolean; onListen(): void },
      handler: Handler,
    ): { readonly addr: { readonly port: number } }
  }
}

const { Bun, Deno } = globalThis as unknown as FetchRuntime
const hostname = '127.0.0.1'
const runtime: ServerRuntime = Bun ? 'bun' : Deno ? 'deno' : 'node'

/** Serves a handler as the documentation of the runtime, or of Hono for Node, describes. */
async function listen(handler: Handler): Promise<number> {
  if (Bun !== undefined) return Bun.serve({ port: 0, hostname, development: false, fetch: handler }).port
  if (Deno !== undefined) {
    const settings = { port: 0, hostname, automaticCompression: false, onListen: () => undefined }
    return Deno.serve(settings, handler).addr.port
  }
  const { serve } = await import('@hono/node-server')
  return new Promise((resolve) => serve({ fetch: handler, port: 0, hostname }, ({ port }) => resolve(port)))
}

async function listenNode(listener: RequestListener): Promise<number> {
  const { createServer } = await import('node:http')
  const server = createServer(listener)
  return new Promise((resolve) => {
    server.listen(0, hostname, () => resolve((server.address() as AddressInfo).port))
  })
}

async function listenOurs(): Promise<number> {
  const { serve }: { serve(api: ServableApi, options: ServeOptions): Promise<RunningServer> } = await import(
    `../../adapters/runtimes/${runtime === 'bun' ? 'bun' : 'node'}.ts`
  )
  return (await serve(service, { port: 0, host: hostname })).port
}

/** Sends the same bytes every time. The handler takes the request, as one that reads it does. */
function listenRaw(headers: Readonly<Record<string, string>>): Promise<number> {
  if (runtime !== 'node' && kind !== 'raw-node-http') {
    return listen((_request) => new Response(ready.text, { headers }))
  }
  const fields = { ...headers, 'Content-Length': String(ready.bytes.length) }
  // As in the documentation, or in the form that costs least.
  const written = kind === 'raw' ? fields : Object.entries(fields).flat()
  return listenNode((_request, response) => {
    response.writeHead(200, written)
    response.end(kind === 'raw-node-http' ? ready.text : ready.bytes)
  })
}

/** The same after the body has been read, as the documentation of the runtime does it. */
function listenRawVerify(): Promise<number> {
  const headers = sameFields('verify')
  if (runtime !== 'node') {
    return listen(async (request) => {
      await request.arrayBuffer()
      return new Response(ready.text, { headers })
    })
  }
  const written = Object.entries({ ...headers, 'Content-Length': String(ready.bytes.length) }).flat()
  return listenNode((request, response) => {
    const chunks: Uint8Array[] = []
    request.on('data', (chunk: Uint8Array) => chunks.push(chunk))
    request.on('end', () => {
      if (Buffer.concat(chunks).length === 0) throw new Error('The body is empty.')
      response.writeHead(200, written)
      response.end(ready.bytes)
    })
  })
}

/** The header fields that the contract requires: the rest is the work of the service. */
function sameFields(policy: 'key' | 'verify'): Readonly<Record<string, string>> {
  const RateLimit = `"${policy}";r=999999999;t=60`
  return { ...ready.headers, 'X-Request-Id': 'req_00000000000000000000', RateLimit }
}

async function listenFastify(kind: 'fastifyReady' | 'fastifySameWork' | 'fastifyVerify'): Promise<number> {
  const app = await (await import('./fastify.ts'))[kind](key, ready)
  return Number(new URL(await app.listen({ port: 0, host: hostname })).port)
}

/** Starts each kind on a free port. */
const starters: Readonly<Record<ServerKind, () => Promise<number>>> = {
  ours: listenOurs,
  'ours-again': listenOurs,
  'ours-verify': listenOurs,
  'ours-metrics': listenOurs,
  'ours-metrics-by-partner': listenOurs,
  fetch: () => listen(service.fetch),
  'fetch-verify': () => listen(service.fetch),
  raw: () => listenRaw({ 'Content-Type': 'application/json; charset=utf-8' }),
  'raw-same-fields': () => listenRaw(sameFields('key')),
  // On Deno, where text costs it less than bytes.
  'raw-node-http': () => listenRaw(sameFields('key')),
  hono: () => listen(honoReady(key, ready).fetch),
  'hono-same-work': () => listen(honoSameWork(key, ready).fetch),
  fastify: () => listenFastify('fastifyReady'),
  'fastify-same-work': () => listenFastify('fastifySameWork'),
  'raw-verify': listenRawVerify,
  'hono-verify': () => listen(honoVerify(key, ready).fetch),
  'fastify-verify': () => listenFastify('fastifyVerify'),
  elysia: async () => listen((await import('./elysia.ts')).elysiaReady(key, ready)),
  'elysia-same-work': async () => listen((await import('./elysia.ts')).elysiaSameWork(key, ready)),
}

const [kind] = process.argv.slice(2)
const store = createMemoryStore()
await fill(store, 500)
const key = await issueKey(store)
const metrics = !kind!.startsWith('ours-metrics') ? undefined : (await import('../../adapters/metrics.ts'))
  .createMetrics({ by: kind === 'ours-metrics-by-partner' ? 'partner' : undefined })
const service = createService(store, undefined, metrics && [metrics.observer])
metrics?.watch(service, store)
const exchange = kind!.endsWith('-verify') ? verifyExchangeFor(key) : undefined
const ready = await readyAnswer(service, key, exchange)
const port = await starters[kind as ServerKind]()

// As a scraper does, but more often.
if (metrics !== undefined) setInterval(metrics.collect, 5_000)
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ microseconds: user + system })
})
// The parent has ended.
process.on('disconnect', () => process.exit())
process.send?.({ port, key })
