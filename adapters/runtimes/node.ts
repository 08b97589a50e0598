/**
 * Serves on Node and on Deno 2.9 or later, directly from `node:http`.
 *
 * Deno's `node:http` has Node's parser. `Deno.serve(api.fetch)` works too, but it has no time limits, keeps the
 * connection of a client that does not read its response, and accepts invalid HTTP.
 *
 * @module
 */
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import { internalsOf } from '../../core/internals.ts'
import { assertInteger, assertOptions, MAX_TIMER_MS, type OptionKinds } from '../../core/lib/options.ts'
import { type ClosableServer, closeServer, stopAccepting } from './node-close.ts'
import { attachApi, releaseIdle, type Serving } from './node-connection.ts'
import { createGuard, grantOf, type Guard, type GuardedReply, type GuardedRequest } from './node-guard.ts'
import { createListener, type ListenerOptions, type NodeRequest, type NodeResponse } from './node-listener.ts'
import { loadHttp, MAX_PARSER_HEADER_BYTES, MAX_PARSER_HEADERS } from './node-request.ts'
import {
  createPendingRequests,
  createRunningServer,
  LISTEN_OPTIONS,
  listenError,
  type ListenOptions,
  resolveListenOptions,
  type RunningServer,
  type ServableApi,
} from './server.ts'

export type { ListenOptions, RunningServer, ServableApi }
export { closeServer, createGuard, createListener, grantOf }
export type {
  ClosableServer,
  Guard,
  GuardedReply,
  GuardedRequest,
  ListenerOptions,
  NodeRequest,
  NodeResponse,
}

/** Settings of the server. All have defaults. */
export interface ServeOptions extends ListenOptions {
  /**
   * Milliseconds in which the head of a request must arrive, default 10,000, at most
   * `requestTimeoutMs`; 0 for no limit.
   */
  readonly headersTimeoutMs?: number
  /**
   * Milliseconds after which an idle connection is closed, default 75,000: longer than the 60 s of common load
   * balancers, so that the balancer closes first and no request meets a closing connection.
   */
  readonly keepAliveTimeoutMs?: number
  /**
   * Milliseconds in which a client must read more of its response, default 60,000; 0 for no limit. It also applies to a
   * request that makes no progress.
   */
  readonly writeTimeoutMs?: number
  /**
   * The most open connections, 1 or more; the server refuses others and logs it. The default, on Linux, leaves the
   * store enough of the process's file descriptors; elsewhere there is no limit.
   */
  readonly maxConnections?: number
}

const optionKinds: OptionKinds<ServeOptions> = {
  ...LISTEN_OPTIONS,
  headersTimeoutMs: 'a number',
  keepAliveTimeoutMs: 'a number',
  writeTimeoutMs: 'a number',
  maxConnections: 'a number',
}

/**
 * Serves `api` over HTTP/1.1. The caller handles signals.
 *
 * @returns The server, once it accepts connections.
 * @throws {Error} when the address can't be listened on; `cause` has the reason.
 * @throws {RangeError} for a setting out of its range.
 * @throws {TypeError} for a setting that does not exist, and for a value of another kind.
 * @example
 * ```ts
 * const server = await serve(api, { port: 0 })
 * const stop = () => server.close()
 * process.once('SIGTERM', stop).once('SIGINT', stop)
 * ```
 */
export async function serve(api: ServableApi, options: ServeOptions = {}): Promise<RunningServer> {
  const settings = resolveOptions(options)
  const { refuse, connectionsRefused } = internalsOf(api)
  const { host, maxConnections, reusePort, writeTimeoutMs } = settings
  const server = createServer(settings)
  const pending = createPendingRequests(0)
  const connections: Serving['connections'] = new Map()
  let isStopping = false
  let isFull = false
  attachApi(server, { handle: api.handle, refuse, pending, connections, writeTimeoutMs })
  server.on('connection', (socket) => {
    if (connections.size === maxConnections && !isFull && !isStopping) {
      // A closed socket keeps its descriptor for a while, and Deno never recovers from running out of descriptors.
      isFull = true
      stopAccepting(server)
      connectionsRefused(maxConnections)
    }
    socket.on('close', onClose)
  })

  server.listen({ port: settings.port, host, reusePort })
  await once(server, 'listening').catch((cause: NodeJS.ErrnoException) => {
    throw listenError(host, settings.port, cause)
  })
  // A failed accept must not end the server.
  server.on('error', () => setTimeout(resumeAccepting, 1_000))
  const { port } = server.address() as AddressInfo
  // A server that cannot close must not keep the process running.
  const releasing = setInterval(releaseIdle, 1_000, connections).unref()

  function onClose(): void {
    if (isFull && connections.size < 0.9 * maxConnections) resumeAccepting()
  }
  function resumeAccepting(): void {
    isFull = false
    if (!isStopping && !server.listening) server.listen({ port, host, reusePort })
  }

  return createRunningServer(api, settings, port, pending, {
    takeOver: () => takeOver(server),
    async stop() {
      isStopping = true
      const closed = once(server, 'close')
      stopAccepting(server)
      // Not at once: the next request of a busy connection may be on its way, and gets a response that closes it.
      let turns = lateTurns
      const interval = setInterval(() => closeIdle(server, connections, turns-- > 0), 50)
      await closed
      clearInterval(interval)
      clearInterval(releasing)
    },
    forceClose() {
      for (const socket of connections.keys()) socket.destroy()
    },
  })
}

function resolveOptions(options: ServeOptions) {
  assertOptions('serve', options, optionKinds)
  const listenOptions = resolveListenOptions(options)
  const { requestTimeoutMs } = listenOptions
  const { headersTimeoutMs = 10_000, keepAliveTimeoutMs = 75_000, writeTimeoutMs = 60_000 } = options
  const { maxConnections = defaultMaxConnections() } = options
  assertInteger('headersTimeoutMs', headersTimeoutMs, 0, MAX_TIMER_MS)
  // Node adds a second.
  assertInteger('keepAliveTimeoutMs', keepAliveTimeoutMs, 0, MAX_TIMER_MS - 1_000)
  assertInteger('writeTimeoutMs', writeTimeoutMs, 0, MAX_TIMER_MS)
  if (maxConnections !== Infinity && !(Number.isInteger(maxConnections) && maxConnections >= 1)) {
    throw new RangeError(`maxConnections must be an integer of 1 or more, and ${maxConnections} is not.`)
  }
  return {
    ...listenOptions,
    headersTimeoutMs: requestTimeoutMs === 0
      ? headersTimeoutMs
      : Math.min(headersTimeoutMs, requestTimeoutMs),
    keepAliveTimeoutMs,
    writeTimeoutMs,
    maxConnections,
  }
}

/** File descriptors reserved for the store; at most half of all. */
const reservedDescriptors = 128

function defaultMaxConnections(): number {
  const { Deno } = globalThis as {
    readonly Deno?: { readonly permissions: { querySync(wanted: { name: string }): { state: string } } }
  }
  // Without the permission, Deno would prompt for it.
  if (Deno !== undefined && Deno.permissions.querySync({ name: 'read' }).state !== 'granted') return Infinity
  try {
    const limits = process.getBuiltinModule('node:fs').readFileSync('/proc/self/limits', 'latin1')
    const maxDescriptors = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Infinity)
    return Math.max(Math.floor(maxDescriptors / 2), maxDescriptors - reservedDescriptors)
  } catch {
    return Infinity
  }
}

function createServer(settings: ReturnType<typeof resolveOptions>): Server {
  const { headersTimeoutMs, requestTimeoutMs, keepAliveTimeoutMs } = settings
  const server = loadHttp().createServer({
    // By default Node drops a repeated Authorization, Host or key header.
    joinDuplicateHeaders: true,
    // Without this, a request without a body would be a stream.
    optimizeEmptyRequests: true,
    // `findHeadProblem` checks Host: Node's own response has no body.
    requireHostHeader: false,
    // Overrides the process's --insecure-http-parser.
    insecureHTTPParser: false,
    maxHeaderSize: MAX_PARSER_HEADER_BYTES,
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(1_000, Math.ceil((headersTimeoutMs || 4_000) / 4)) || 1_000,
  })
  server.maxHeadersCount = MAX_PARSER_HEADERS
  // A client may close its half after the request (RFC 9112 §9.6). Undocumented, but as old as Node; a Node without it
  // closes the connection of such a client.
  return Object.assign(server, { httpAllowHalfOpen: true })
}

/** The most connections that may wait for the server: Node's default. */
const backlog = 511

/**
 * Deno takes over waiting connections after a timer, and Node one in each turn of its loop. By the second turn without
 * any, their requests are answered, so that little time is left for others to come.
 */
async function takeOver(server: Server): Promise<void> {
  let quietTurns = 0
  server.on('connection', () => quietTurns = 0)
  await new Promise((resolve) => setTimeout(resolve))
  for (let turns = 0; quietTurns < 2 && turns < backlog; turns++) {
    quietTurns++
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** How many turns of 50 ms a connection that was opened during the delay may take to send a request. */
const lateTurns = 20

/** Closes idle connections, unless a response is still being sent or, until then, a late connection is not used yet. */
function closeIdle(server: Server, connections: Serving['connections'], waitsForLate: boolean): void {
  for (const { isLate, socket: { bytesRead, writableLength } } of connections.values()) {
    if (writableLength > 0 || waitsForLate && isLate && bytesRead === 0) return
  }
  server.close()
  // Up to version 24, Node does not count a connection without any request as idle.
  for (const { socket } of connections.values()) if (socket.bytesRead === 0) socket.destroy()
}
