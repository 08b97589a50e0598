/**
 * A Worker that serves stores in its memory, one for each name of a host. The second entrypoint is the operator's: it
 * calls a store as another process calls a file or a database, so that the same hands do the same work on it.
 */
import { createWorker, type WorkerContext, type WorkerHandler } from '../../adapters/runtimes/workers.ts'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import type { Store, StoreSettings } from '../../core/ports/store.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import type { Write } from './template.ts'

/** What the operator wants. Everything in it, and in what is answered, is plain. */
export type Wish =
  | {
    readonly open: string
    readonly settings: StoreSettings
    readonly writes: readonly Write[]
  }
  | {
    readonly call: string
    readonly method: string
    readonly words: readonly unknown[]
  }
  | {
    readonly start: string
    readonly options: PartnerApiOptions
    readonly revisionTakesMs: number
  }
  | { readonly close: string }

const stores = new Map<string, Store>()
const workers = new Map<string, WorkerHandler<unknown>>()

/** Writes what was written to another store. Where changes say what they were judged by, that is this one's now. */
async function write(
  store: Store,
  method: Write[0],
  words: readonly unknown[],
): Promise<void> {
  const { facts } = await store.revision()
  const [changes, , ...more] = words
  const said = method === 'apply' ? [changes, facts, ...more] : words
  await (store[method] as (...words: readonly unknown[]) => unknown)(...said)
}

async function fulfil(wish: Wish): Promise<unknown> {
  if ('open' in wish) {
    const store = { ...createMemoryStore(), settings: wish.settings }
    for (const [method, words] of wish.writes) {
      await write(store, method, words)
    }
    stores.set(wish.open, store)
    return
  }
  if ('call' in wish) {
    const store = stores.get(wish.call) as unknown as Record<
      string,
      (...words: unknown[]) => unknown
    >
    // JSON has no undefined: an argument that was left out arrives as null.
    return await store[wish.method]?.(
      ...wish.words.map((word) => word ?? undefined),
    )
  }
  if ('start' in wish) {
    const { options, revisionTakesMs } = wish
    const store = late(stores.get(wish.start) as Store, revisionTakesMs)
    const worker = createWorker(() => createPartnerApi({ store }, options), {
      trustConnectingIp: true,
    })
    workers.set(wish.start, worker)
    return
  }
  stores.delete(wish.close)
  workers.delete(wish.close)
}

/** A store whose revision has to be waited for, as that of one elsewhere. */
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

/** The operator's. */
export const operator = {
  async fetch(request: Request): Promise<Response> {
    return Response.json({ value: await fulfil(await request.json() as Wish) })
  },
}

export default {
  fetch(
    request: Request,
    env: unknown,
    context: WorkerContext,
  ): Promise<Response> {
    const worker = workers.get(new URL(request.url).hostname)
    return worker?.fetch(request, env, context) ??
      Promise.resolve(new Response(null, { status: 421 }))
  },
}
