/**
 * Serves stores with the adapter of the runtime that runs it. Reads commands from standard input and writes results to
 * standard output, one line of JSON each. Ends with its input.
 */
import process from 'node:process'
import { createInterface } from 'node:readline'
import type { ListenOptions, RunningServer, ServableApi } from '../../adapters/runtimes/server.ts'
import { createPartnerApi } from '../../core/api.ts'
import { resolveOptions, type ServedOptions } from '../support/own-endpoints.ts'
import { openStore } from './open-store.ts'

/** A command to the program. */
export type Order =
  | {
    readonly id: number
    readonly serve: string
    readonly options: ServedOptions
    readonly listening?: ListenOptions
  }
  | { readonly id: number; readonly stop: string }

/** The result of a command. */
export interface Done {
  readonly id: number
  readonly url?: string
  readonly error?: string
}

type Serve = (api: ServableApi, options: ListenOptions) => Promise<RunningServer>

async function loadAdapter(): Promise<Serve> {
  if (process.versions['bun'] !== undefined) return (await import('../../adapters/runtimes/bun.ts')).serve
  return (await import('../../adapters/runtimes/node.ts')).serve
}

const serve = await loadAdapter()
const stops = new Map<string, () => Promise<void>>()

async function execute(order: Order): Promise<Omit<Done, 'id'>> {
  if ('stop' in order) {
    await stops.get(order.stop)?.()
    stops.delete(order.stop)
    return {}
  }
  const store = await openStore(order.serve)
  const listening = { port: 0, drainTimeoutMs: 1_000, ...order.listening }
  const server = await serve(createPartnerApi({ store }, resolveOptions(order.options)), listening)
  stops.set(server.url, async () => {
    await server.close()
    await store.close()
  })
  return { url: server.url }
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const order: Order = JSON.parse(line)
  const done = await execute(order).catch((error: Error) => ({ error: error.stack ?? error.message }))
  process.stdout.write(`${JSON.stringify({ id: order.id, ...done })}\n`)
}).on('close', () => process.exit())
