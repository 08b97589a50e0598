/** A receiver of webhooks on the loopback. */
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** @param respond Answers; with 204 by default. */
export async function startReceiver(
  respond: (response: ServerResponse, received: Received) => void = (response) =>
    response.writeHead(204).end(),
) {
  const received: Received[] = []
  const arrivals = new EventEmitter()
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    const delivery = { path: request.url!, headers: request.headers, body }
    received.push(delivery)
    respond(response, delivery)
    arrivals.emit('delivery')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    /** Waits for the first delivery that has arrived or arrives and that `isIt`. */
    async delivery(isIt: (delivery: Received) => boolean = () => true): Promise<Received> {
      for (;;) {
        const found = received.find(isIt)
        if (found !== undefined) return found
        await once(arrivals, 'delivery')
      }
    },
    close(): void {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** The type in the body of a delivery. */
export function typeOf({ body }: Received): string {
  return JSON.parse(body).type
}
