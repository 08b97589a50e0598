/**
 * One server in its own process, so that its processor time can be measured. Reports its port and, on request, the
 * processor time that it has used.
 */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import type { FastifyInstance } from 'fastify'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import * as fastify from './fastify.ts'
import * as hono from './hono.ts'
import { ownEndpoints } from './own-endpoints.ts'
import { createService, fill, issueKey, readyAnswer, verifyExchangeFor } from './tenant.ts'

/**
 * A server. A peer without a suffix only checks the key and sends the page. `raw` is `node:http`. Those that end in `verify`
 * are sent checks of keys, those that end in `pages` searches of the store in the file that the second argument names.
 */
export type ServerKind =
  | `ours${'' | '-verify' | '-uncached'}`
  | `own${'' | '-revision'}`
  | `raw${'' | '-same-fields' | '-verify'}`
  | `${'hono' | 'fastify'}${'' | '-same-work' | '-verify' | '-pages'}`
  | 'hono-plain-pages'

const hostname = '127.0.0.1'

type Fetch = (request: Request) => Response | Promise<Response>

/** The runtime's own server of fetch handlers; Node has none. */
const { Bun, Deno } = globalThis as unknown as {
  readonly Bun?: { serve(options: object): { readonly port: number } }
  readonly Deno?: { serve(options: object, fetch: Fetch): { readonly addr: { readonly port: number } } }
}

function listenFetch(fetch: Fetch): number | undefined {
  if (Bun) return Bun.serve({ fetch, port: 0, hostname }).port
  return Deno?.serve({ port: 0, hostname, onListen: () => {} }, fetch).addr.port
}

/** Serves a handler as Hono's documentation describes. */
async function listenHono({ fetch }: { readonly fetch: Fetch }): Promise<number> {
  const port = listenFetch(fetch)
  if (port !== undefined) return port
  const { serve } = await import('@hono/node-server')
  return new Promise((resolve) => serve({ fetch, port: 0, hostname }, ({ port }) => resolve(port)))
}

function listenNode(listener: RequestListener): Promise<number> {
  const server = createServer(listener)
  return new Promise((resolve) => {
    server.listen(0, hostname, () => resolve((server.address() as AddressInfo).port))
  })
}

/** Sends the same bytes every time, with header fields as in the documentation, or in the form that costs least. */
function listenRaw(headers: Readonly<Record<string, string>>, isFlat: boolean): Promise<number> {
  const port = listenFetch(() => new Response(ready.text, { headers }))
  if (port !== undefined) return Promise.resolve(port)
  const fields = { ...headers, 'Content-Length': String(ready.bytes.length) }
  const written = isFlat ? Object.entries(fields).flat() : fields
  return listenNode((_request, response) => {
    response.writeHead(200, written)
    response.end(ready.bytes)
  })
}

/** The same after the body has been read, as the documentation of the runtime does it. */
function listenRawVerify(): Promise<number> {
  const headers = sameFields('verify')
  const port = listenFetch(async (request) => {
    if ((await request.text()).length === 0) throw new Error('The body is empty.')
    return new Response(ready.text, { headers })
  })
  if (port !== undefined) return Promise.resolve(port)
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

async function listenFastify(app: FastifyInstance): Promise<number> {
  return Number(new URL(await app.listen({ port: 0, host: hostname })).port)
}

async function listenOurs(): Promise<number> {
  const { serve } = Bun
    ? await import('../../adapters/runtimes/bun.ts')
    : await import('../../adapters/runtimes/node.ts')
  return (await serve(service, { port: 0, host: hostname })).port
}

/** Starts each kind on a free port. */
const starters: Readonly<Record<ServerKind, () => Promise<number>>> = {
  ours: listenOurs,
  'ours-verify': listenOurs,
  'ours-uncached': listenOurs,
  own: listenOurs,
  'own-revision': listenOurs,
  raw: () => listenRaw({ 'Content-Type': 'application/json; charset=utf-8' }, false),
  'raw-same-fields': () => listenRaw(sameFields('key'), true),
  'raw-verify': listenRawVerify,
  hono: () => listenHono(hono.honoReady(key, ready)),
  'hono-same-work': () => listenHono(hono.honoSameWork(key, ready)),
  'hono-verify': () => listenHono(hono.honoVerify(key, ready)),
  'hono-pages': () => listenHono(hono.honoPages(key, store)),
  'hono-plain-pages': () => listenHono(hono.honoPages(key, store, true)),
  fastify: async () => listenFastify(await fastify.fastifyReady(key, ready)),
  'fastify-same-work': async () => listenFastify(await fastify.fastifySameWork(key, ready)),
  'fastify-verify': async () => listenFastify(await fastify.fastifyVerify(key, ready)),
  'fastify-pages': async () => listenFastify(await fastify.fastifyPages(key, store)),
}

const [kind = '', file] = process.argv.slice(2)
const store = file === undefined ? await openMemoryStore() : await openSqliteStore(file)
if (file === undefined) await fill(store, 500)
const key = await issueKey(store)
const service = createService(store, {
  ...(kind.startsWith('own') && { endpoints: ownEndpoints(store) }),
  ...(kind === 'ours-uncached' && { responseCacheBytes: 0 }),
})
const ready = await readyAnswer(service, key, kind.endsWith('-verify') ? verifyExchangeFor(key) : undefined)
const port = await starters[kind as ServerKind]()

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ microseconds: user + system })
})
// The parent has ended.
process.on('disconnect', () => process.exit())
process.send?.({ port, key })
