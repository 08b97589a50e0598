/**
 * One server in a process of its own, so that its processor time can be told from everybody else's. It says where it
 * listens, and how much processor time it has used whenever it is asked.
 */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import { serve as serveHono } from '@hono/node-server'
import type { FastifyInstance } from 'fastify'
import { createMemoryStore } from '../../../adapters/stores/memory/store.ts'
import type { PartnerApi } from '../../../core/api.ts'
import type { Store } from '../../../core/ports/store.ts'
import { createService, fill, issueKey } from '../data/tenant.ts'
import { fastifyListing, fastifyReady, fastifySameWork } from '../peers/fastify.ts'
import { honoListing, honoReady, honoSameWork } from '../peers/hono.ts'
import { type ReadyAnswer, readyAnswer } from '../peers/ready-answer.ts'
import type { NodeServerKind } from './kinds.ts'

interface Parts {
  readonly store: Store
  readonly service: PartnerApi
  readonly key: string
  readonly ready: ReadyAnswer
}

const host = '127.0.0.1'

/** Starts each kind on a free port. */
const starters: Readonly<Record<NodeServerKind, (parts: Parts) => Promise<number>>> = {
  ours: async ({ service }) => {
    const { serve } = await import('../../../adapters/runtimes/node.ts')
    return (await serve(service, { port: 0, host })).port
  },

  // What node:http costs whoever uses it as its documentation has it.
  raw: ({ ready }) => {
    const headers = {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': String(ready.bytes.length),
    }
    return listen((_request, response) => {
      response.writeHead(200, headers)
      response.end(ready.bytes)
    })
  },

  // The same with the header fields that the contract asks for, alike in each answer: what is left to the service.
  'raw-same-fields': ({ ready }) => {
    const headers = {
      ...ready.headers,
      'Content-Length': String(ready.bytes.length),
      'X-Request-Id': 'req_00000000000000000000',
      'RateLimit': '"key";r=999999999;t=60',
    }
    const fields = Object.entries(headers).flat()
    return listen((_request, response) => {
      response.writeHead(200, fields)
      response.end(ready.bytes)
    })
  },

  hono: ({ key, ready }) => listenHono(honoReady(key, ready).fetch),
  'hono-same-work': ({ key, ready }) => listenHono(honoSameWork(key, ready).fetch),
  'hono-listing': ({ key, store }) => listenHono(honoListing(key, store).fetch),

  fastify: async ({ key, ready }) => listenFastify(await fastifyReady(key, ready)),
  'fastify-same-work': async ({ key, ready }) => listenFastify(await fastifySameWork(key, ready)),
  'fastify-listing': async ({ key, store }) => listenFastify(await fastifyListing(key, store)),
}

function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener)
  return new Promise((resolve) => {
    server.listen(0, host, () => resolve((server.address() as AddressInfo).port))
  })
}

function listenHono(fetch: (request: Request) => Response | Promise<Response>): Promise<number> {
  return new Promise((resolve) => serveHono({ fetch, port: 0, hostname: host }, ({ port }) => resolve(port)))
}

async function listenFastify(app: FastifyInstance): Promise<number> {
  return Number(new URL(await app.listen({ port: 0, host })).port)
}

const [kind, profileCount] = process.argv.slice(2)
const store = createMemoryStore()
await fill(store, Number(profileCount))
const key = await issueKey(store)
const service = createService(store)
const ready = await readyAnswer(service, key)
const port = await starters[kind as NodeServerKind]({ store, service, key, ready })

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ microseconds: user + system })
})
// The parent is gone, whatever became of it: nobody is left to serve.
process.on('disconnect', () => process.exit())
process.send?.({ port, key })
