/** Stops servers of `node:http` without losing a request. */
import { Server as NetServer } from 'node:net'
import { assertInteger, MAX_TIMER_MS } from '../../core/lib/options.ts'

/** The part of a `node:http` server that `closeServer` needs, without Node's types. */
export interface ClosableServer {
  /** Whether it accepts connections. */
  readonly listening: boolean
  /** Stops accepting connections. */
  close(): unknown
  /** Adds a listener for an event, before the others. */
  prependListener(
    event: 'request',
    listener: (request: unknown, response: { setHeader(name: string, value: string): unknown }) => void,
  ): unknown
  /** Adds a listener for one event. */
  once(event: 'close', listener: () => void): unknown
  /** Closes the connections that wait for a request. */
  closeIdleConnections?(): void
  /** Closes all connections. */
  closeAllConnections?(): void
}

/** Milliseconds after which idle connections are closed. Before that, the next request of a busy one may be on its way. */
const idleAfterMs = 500

/**
 * Stops a server of `node:http`, as Express, Hono and Connect have it, when the process gets a signal. `close()` of the
 * server itself destroys a connection whose client is about to send its next request; here that request gets a response,
 * with `Connection: close`. Idle connections end after half a second, and what is left after `timeoutMs`.
 *
 * @param timeoutMs Milliseconds for pending requests, default 10,000.
 * @returns Once the last connection has ended; at once for a server that does not listen.
 * @throws {RangeError} for a time out of its range.
 */
export async function closeServer(server: ClosableServer, timeoutMs = 10_000): Promise<void> {
  assertInteger('timeoutMs', timeoutMs, 0, MAX_TIMER_MS)
  if (!server.listening) return
  const closed = new Promise<void>((resolve) => server.once('close', resolve))
  server.prependListener('request', (_request, response) => response.setHeader('Connection', 'close'))
  if (server instanceof NetServer) stopAccepting(server)
  else server.close()
  const closingIdle = setInterval(() => server.closeIdleConnections?.(), idleAfterMs)
  const closingAll = setTimeout(() => server.closeAllConnections?.(), timeoutMs)
  await closed
  clearInterval(closingIdle)
  clearTimeout(closingAll)
}

/**
 * Stops accepting connections, as close() of `node:net` does: that of `node:http` destroys connections with unsent
 * responses. Does nothing on Bun, whose HTTP servers are not servers of `node:net`.
 */
export function stopAccepting(server: ClosableServer): void {
  if (server instanceof NetServer) NetServer.prototype.close.call(server)
}
