/**
 * One server on Bun or Deno in a process of its own, as `server.ts` is on Node: it says where it listens, and how much
 * processor time it has used whenever it is asked.
 */
import process from 'node:process'
import type { ListenOptions, RunningServer, ServableApi } from '../../../adapters/runtimes/server.ts'
import { createMemoryStore } from '../../../adapters/stores/memory/store.ts'
import type { PartnerApi } from '../../../core/api.ts'
import { createService, fill, issueKey } from '../data/tenant.ts'
import { honoReady, honoSameWork } from '../peers/hono.ts'
import { type ReadyAnswer, readyAnswer } from '../peers/ready-answer.ts'
import type { FetchServerKind } from './kinds.ts'

type Handler = (request: Request) => Response | Promise<Response>

/** What of the runtime is used here. */
interface Runtime {
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

const { Bun, Deno } = globalThis as unknown as Runtime
const hostname = '127.0.0.1'

/** What the runtime costs whoever uses its server as its documentation has it. */
function listen(handler: Handler): number {
  if (Bun !== undefined) {
    return Bun.serve({ port: 0, hostname, development: false, fetch: handler }).port
  }
  const settings = { port: 0, hostname, automaticCompression: false, onListen: () => undefined }
  return Deno!.serve(settings, handler).addr.port
}

async function serveOurs(service: PartnerApi): Promise<number> {
  const { serve }: { serve(api: ServableApi, options: ListenOptions): Promise<RunningServer> } =
    Bun === undefined
      ? await import('../../../adapters/runtimes/deno.ts')
      : await import('../../../adapters/runtimes/bun.ts')
  return (await serve(service, { port: 0, host: hostname })).port
}

interface Parts {
  readonly service: PartnerApi
  readonly key: string
  readonly ready: ReadyAnswer
}

/** Starts each kind on a free port. A handler that takes its request is one that could look at it. */
const starters: Readonly<Record<FetchServerKind, (parts: Parts) => number | Promise<number>>> = {
  ours: ({ service }) => serveOurs(service),
  fetch: ({ service }) => listen((request) => service.fetch(request)),
  raw({ ready }) {
    const headers = { 'Content-Type': 'application/json; charset=utf-8' }
    return listen((_request) => new Response(ready.text, { headers }))
  },
  'raw-same-fields'({ ready }) {
    const headers = {
      ...ready.headers,
      'X-Request-Id': 'req_00000000000000000000',
      'RateLimit': '"key";r=999999999;t=60',
    }
    return listen((_request) => new Response(ready.text, { headers }))
  },
  hono: ({ key, ready }) => listen(honoReady(key, ready).fetch),
  'hono-same-work': ({ key, ready }) => listen(honoSameWork(key, ready).fetch),
  elysia: async ({ key, ready }) => listen((await import('../peers/elysia.ts')).elysiaReady(key, ready)),
  'elysia-same-work': async ({ key, ready }) =>
    listen((await import('../peers/elysia.ts')).elysiaSameWork(key, ready)),
}

const [kind, profileCount] = process.argv.slice(2)
const store = createMemoryStore()
await fill(store, Number(profileCount))
const key = await issueKey(store)
const service = createService(store)
const ready = await readyAnswer(service, key)
const port = await starters[kind as FetchServerKind]({ service, key, ready })

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ microseconds: user + system })
})
// The parent is gone, whatever became of it: nobody is left to serve.
process.on('disconnect', () => process.exit())
process.send?.({ port, key })
