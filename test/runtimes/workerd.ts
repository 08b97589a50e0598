import { sha256 } from '../../adapters/digest.ts'
import { collect } from '../../adapters/stores/content.ts'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import type { Store, StoreSettings } from '../../core/ports/store.ts'
import type { ServedOptions } from '../support/own-endpoints.ts'
import { ROOT } from '../package/installed.ts'
import { startWorker } from '../support/workerd-process.ts'
import type { ServingChild } from './child.ts'
import type { DurableWish } from './durable-worker.ts'
import type { Template } from './template.ts'
import type { Wish } from './worker.ts'

/** workerd with `worker.ts`. */
export interface Workerd {
  /** The origin of all its services, which differ by host name. */
  readonly origin: string
  /** Creates a store with the contents of another. */
  open(name: string, template: Pick<Template, 'settings' | 'writes'>): Promise<Store>
  /** Serves a store under its name. */
  start(name: string, options: ServedOptions, revisionTakesMs?: number): Promise<void>
  close(name: string): Promise<void>
  end(): Promise<void>
}

/** Starts workerd. */
export async function startWorkerd(): Promise<Workerd> {
  const { url, callOperator, end } = await startWorker('test/runtimes/worker.ts', ROOT, { hasOperator: true })
  const wish = (what: Wish): Promise<unknown> => callOperator(what)
  return {
    origin: url,
    async open(name, { settings, writes }) {
      await wish({ open: name, settings, writes })
      return remoteStore(name, wish, settings)
    },
    start: async (name, options, revisionTakesMs = 0) =>
      void await wish({ start: name, options, revisionTakesMs }),
    close: async (name) => void await wish({ close: name }),
    end,
  }
}

/** The methods of the memory store, called remotely. */
function remoteStore(name: string, wish: (what: Wish) => Promise<unknown>, settings: StoreSettings): Store {
  const methods = Object.entries(createMemoryStore()).filter(([, member]) => typeof member === 'function')
  const calls = methods.map(([method]) => [
    method,
    // Records may be an iterable, which JSON cannot encode.
    async (...words: unknown[]) => {
      const gathered = method === 'importContent'
        ? words.with(1, await collect(words[1] as AsyncIterable<unknown>))
        : words
      return await wish({ call: name, method, words: gathered })
    },
  ])
  return { ...Object.fromEntries(calls), settings, sha256 }
}

/** Starts workerd with `durable-worker.ts`, which serves PostgreSQL databases. */
export async function startDurable(): Promise<ServingChild> {
  const { url: origin, callOperator, end } = await startWorker('test/runtimes/durable-worker.ts', ROOT, {
    durableObjects: { SERVICE: 'Service' },
    hasOperator: true,
  })
  const wish = (what: DurableWish): Promise<unknown> => callOperator(what)
  let names = 0
  return {
    async serve(url, options) {
      const name = `database-${names++}.test`
      await wish({ start: name, url, options })
      return { origin, name }
    },
    stop: async ({ name = '' }) => void await wish({ stop: name }),
    end,
  }
}
