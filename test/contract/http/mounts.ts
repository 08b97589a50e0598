/** Runs services behind Node's HTTP server, or through their fetch handler without a server. */
import { serve } from '../../../adapters/runtimes/node.ts'
import type { PartnerApi } from '../../../core/api.ts'
import type { Mounted } from './deploy.ts'
import { fetchTransport, socketTransport } from './wires.ts'

/** Serves on a free port of this machine. */
export async function onNode(api: PartnerApi): Promise<Mounted> {
  const server = await serve(api, { port: 0 })
  const wire = socketTransport(server.url)
  return {
    send: wire.send,
    quirks: new Set(),
    async close() {
      wire.close()
      await server.drain()
    },
  }
}

/** Calls the fetch handler in this process. */
export function inProcess(api: PartnerApi): Promise<Mounted> {
  // The address of the peer, as Deno passes it.
  const fetchFrom = (request: Request) => api.fetch(request, { remoteAddr: { hostname: '127.0.0.1' } })
  return Promise.resolve({
    send: fetchTransport(fetchFrom),
    quirks: new Set(['resolves-targets', 'no-trace']),
    close: () => Promise.resolve(),
  })
}
