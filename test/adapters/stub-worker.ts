/**
 * A Worker that serves stores of one key, one for each host name. Its second entrypoint lets the test start services, and
 * read what they wrote.
 */
import { createWorker, type WorkerContext, type WorkerHandler } from '../../adapters/runtimes/workers.ts'
import { createPartnerApi } from '../../core/api.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { createOneKeyStore } from '../support/one-key-store.ts'

/** A service that the test starts. */
export interface Started {
  readonly name: string
  readonly options: PartnerApiOptions
  /** Milliseconds that a read of the revision takes. */
  readonly revisionTakesMs: number
}

/** What a service wrote. */
export interface Written {
  readonly requests: number
  readonly hasKeyUse: boolean
}

/** A command of the test: the result of `start` is the key, and that of `read` is `Written`. */
export type Order = { readonly start: Started } | { readonly read: string }

const workers = new Map<string, WorkerHandler<unknown>>()
const written = new Map<string, Written>()

function start({ name, options, revisionTakesMs }: Started): string {
  written.set(name, { requests: 0, hasKeyUse: false })
  const { store, key } = createOneKeyStore({
    async revision() {
      if (revisionTakesMs > 0) await new Promise((resolve) => setTimeout(resolve, revisionTakesMs))
      return { facts: 'unchanging', content: 'unchanging' }
    },
    recordKeyUses: () => void written.set(name, { ...written.get(name)!, hasKeyUse: true }),
    recordUsage(counts) {
      const { requests, hasKeyUse } = written.get(name)!
      const added = counts.reduce((sum, count) => sum + count.requests, 0)
      written.set(name, { requests: requests + added, hasKeyUse })
    },
  })
  workers.set(name, createWorker(() => createPartnerApi({ store }, options)))
  return key
}

/** The entrypoint of the test. */
export const operator = {
  async fetch(request: Request): Promise<Response> {
    const order = await request.json() as Order
    return Response.json({ value: 'read' in order ? written.get(order.read) : start(order.start) })
  },
}

export default {
  fetch(request: Request, env: unknown, context: WorkerContext): Promise<Response> {
    // Without a `waitUntil`, as with `api.fetch` alone, the runtime cancels the request of a client that disconnects.
    const kept = request.headers.has('x-cancellable') ? { waitUntil: () => undefined } : context
    return workers.get(new URL(request.url).hostname)!.fetch(request, env, kept)
  },
}
