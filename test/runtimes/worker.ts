/**
 * A Worker that serves stores in its memory, one per host name. The second entrypoint lets the operator call a store
 * remotely, so that the same administration code works on it.
 */
import { createWorker, type WorkerContext, type WorkerHandler } from '../../adapters/runtimes/workers.ts'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import type { Store, StoreSettings } from '../../core/ports/store.ts'
import { resolveOptions, type ServedOptions } from '../support/own-endpoints.ts'
import type { Write } from './template.ts'

/** A command of the operator. Commands and results are plain JSON. */
export type Wish =
  | { readonly open: string; readonly settings: StoreSettings; readonly writes: readonly Write[] }
  | { readonly call: string; readonly method: string; readonly words: readonly unknown[] }
  | { readonly start: string; readonly options: ServedOptions; readonly revisionTakesMs: number }
  | { readonly close: string }

const stores = new Map<string, Store>()
const workers = new Map<string, WorkerHandler<unknown>>()

/** Repeats the writes to another store, with revisions of this store. */
async function write(store: Store, [method, words]: Write): Promise<void> {
  const { facts } = await store.revision()
  const [changes, , ...more] = words
  const said = method === 'apply' ? [changes, facts, ...more] : words
  await (store[method] as (...words: readonly unknown[]) => unknown)(...said)
}

async function execute(wish: Wish): Promise<unknown> {
  if ('open' in wish) {
    const store = { ...createMemoryStore(), settings: wish.settings }
    for (const one of wish.writes) await write(store, one)
    stores.set(wish.open, store)
    return
  }
  if ('call' in wish) {
    const store = stores.get(wish.call) as unknown as Record<string, (...words: unknown[]) => unknown>
    // JSON has no undefined: an omitted argument arrives as null.
    return await store[wish.method]?.(...wish.words.map((word) => word ?? undefined))
  }
  if ('start' in wish) {
    const { options, revisionTakesMs } = wish
    const store = late(stores.get(wish.start) as Store, revisionTakesMs)
    workers.set(
      wish.start,
      createWorker(() => createPartnerApi({ store }, resolveOptions(options)), { trustConnectingIp: true }),
    )
    return
  }
  stores.delete(wish.close)
  workers.delete(wish.close)
}

/** A store with an asynchronous revision, like that of a remote store. */
function late(store: Store, milliseconds: number): Store {
  if (milliseconds === 0) return store
  return {
    ...store,
    async revision() {
      await new Promise((resolve) => setTimeout(resolve, milliseconds))
      return store.revision()
    },
  }
}

/** The entrypoint of the operator. */
export const operator = {
  async fetch(request: Request): Promise<Response> {
    return Response.json({ value: await execute(await request.json() as Wish) })
  },
}

export default {
  fetch(request: Request, env: unknown, context: WorkerContext): Promise<Response> {
    const worker = workers.get(new URL(request.url).hostname)
    // Without a `waitUntil`, as with `api.fetch` alone, the runtime cancels the request of a client that disconnects.
    const kept = request.headers.has('x-cancellable') ? { waitUntil: () => undefined } : context
    return worker?.fetch(request, env, kept) ??
      Promise.resolve(new Response(null, { status: 421 }))
  },
}
