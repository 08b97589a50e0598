/** One server over a store of profiles, in its own process: the service, or a peer that does the same by hand. */
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import { serve } from '../../adapters/runtimes/node.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createService, issueKey } from './tenant.ts'

const [kind, file] = process.argv.slice(2)
const hostname = '127.0.0.1'
const store = await openSqliteStore(file!)
const key = await issueKey(store)

const starters: Readonly<Record<string, () => Promise<number>>> = {
  ours: async () => (await serve(createService(store), { port: 0, host: hostname })).port,
  async hono() {
    const { serve } = await import('@hono/node-server')
    const { fetch } = (await import('./hono.ts')).honoPages(key, store)
    return new Promise((resolve) => serve({ fetch, port: 0, hostname }, ({ port }) => resolve(port)))
  },
  async fastify() {
    const app = await (await import('./fastify.ts')).fastifyPages(key, store)
    await app.listen({ port: 0, host: hostname })
    return (app.server.address() as AddressInfo).port
  },
}

const port = await starters[kind!]!()

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ microseconds: user + system })
})
// The parent has ended.
process.on('disconnect', () => process.exit())
process.send?.({ port, key })
