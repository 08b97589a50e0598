/**
 * A Worker that serves PostgreSQL databases from Durable Objects, one per host name. Requests of a Worker cannot share
 * connections; those of a Durable Object can.
 */
import { createWorker, type WorkerContext, type WorkerHandler } from '../../adapters/runtimes/workers.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import { resolveOptions, type ServedOptions } from '../support/own-endpoints.ts'

/** A command of the operator. */
export type DurableWish =
  | { readonly start: string; readonly url: string; readonly options: ServedOptions }
  | { readonly stop: string }

interface Env {
  readonly SERVICE: {
    idFromName(name: string): object
    get(id: object): { fetch(request: Request): Promise<Response> }
  }
}

interface Served {
  readonly worker: WorkerHandler<unknown>
  close(): Promise<void>
}

const served = new Map<string, Served>()

function serve(url: string, options: ServedOptions): Served {
  let close = (): Promise<void> => Promise.resolve()
  const worker = createWorker(async () => {
    const store = await openPostgresStore(url, { migrate: false, lookUpTimeoutMs: 10_000 })
    const api = createPartnerApi({ store }, resolveOptions(options))
    close = async () => {
      await api.close()
      await store.close()
    }
    return api
  }, { trustConnectingIp: true })
  return { worker, close: () => close() }
}

/** The Durable Object. Its state has `waitUntil`, like the context of a Worker. */
export class Service {
  readonly #state: WorkerContext
  readonly #env: Env

  constructor(state: WorkerContext, env: Env) {
    this.#state = state
    this.#env = env
  }

  async fetch(request: Request): Promise<Response> {
    const one = served.get(new URL(request.url).hostname)!
    if (request.headers.get('x-operator') !== 'stop') return one.worker.fetch(request, this.#env, this.#state)
    await one.close()
    return new Response()
  }
}

const objectFor = ({ SERVICE }: Env, name: string): { fetch(request: Request): Promise<Response> } =>
  SERVICE.get(SERVICE.idFromName(name))

/** The entrypoint of the operator. */
export const operator = {
  async fetch(request: Request, env: Env): Promise<Response> {
    const wish = await request.json() as DurableWish
    if ('start' in wish) {
      served.set(wish.start, serve(wish.url, wish.options))
    } else {
      const stop = new Request(`http://${wish.stop}/`, { headers: { 'x-operator': 'stop' } })
      await objectFor(env, wish.stop).fetch(stop)
      served.delete(wish.stop)
    }
    return Response.json({ value: null })
  },
}

export default {
  fetch(request: Request, env: Env): Promise<Response> {
    return objectFor(env, new URL(request.url).hostname).fetch(request)
  },
}
