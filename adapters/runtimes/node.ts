/**
 * Serves on Node, straight from `node:http`, and so on Deno.
 *
 * @module
 */
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import process from 'node:process'
import { assertInteger, MAX_TIMER_MS } from '../../core/lib/validate.ts'
import { attachApi, writeResponse } from './node-connection.ts'
import {
  loadHttp,
  maxParserHeaderBytes,
  maxParserHeaders,
  MountedHttpRequest,
  toOriginForm,
} from './node-request.ts'
import {
  createPendingRequests,
  createRunningServer,
  listenError,
  type ListenOptions,
  resolveListenOptions,
  type RunningServer,
  type ServableApi,
  waitForDrain,
} from './server.ts'

export type { RunningServer, ServableApi }

/** Node waits for a second longer than it is told to. */
const MAX_KEEP_ALIVE_MS = MAX_TIMER_MS - 1_000

/** Settings of the server. All have defaults. */
export interface ServeOptions extends ListenOptions {
  /** Milliseconds in which the head of a request must have arrived, default 10,000, never more than the request's; 0 for any. */
  readonly headersTimeoutMs?: number
  /**
   * Milliseconds for which an idle connection is kept, default 75,000: longer than the 60 s of the usual
   * balancers, so that it is they who close first and no request meets a closing connection.
   */
  readonly keepAliveTimeoutMs?: number
  /**
   * Milliseconds in which a client must take more of its answer, default 60,000; 0 for no limit. A request that stands
   * still for so long is cut off as well.
   */
  readonly writeTimeoutMs?: number
  /**
   * How many connections may be open, 1 or more; others are refused, and the log says so. By default what leaves the
   * store enough of the files that the process may open, on Linux; elsewhere there is no limit.
   */
  readonly maxConnections?: number
}

/** Files that are kept for the store where there are many, and half of them where there are not. */
const reservedDescriptors = 128

/** Needs `--allow-read` on Deno, and must not ask for it. */
function defaultMaxConnections(): number {
  const { Deno } = globalThis as {
    readonly Deno?: { readonly permissions: { querySync(wanted: { name: string }): { state: string } } }
  }
  if (Deno !== undefined && Deno.permissions.querySync({ name: 'read' }).state !== 'granted') return Infinity
  try {
    const limits = process.getBuiltinModule('node:fs').readFileSync('/proc/self/limits', 'latin1')
    const maxDescriptors = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Infinity)
    return Math.max(Math.floor(maxDescriptors / 2), maxDescriptors - reservedDescriptors)
  } catch {
    return Infinity
  }
}

/** What a listener is told of a request by `node:http` and `node:http2`, in words that need no types of Node's. */
export interface NodeRequest {
  /** As sent. */
  readonly method?: string | undefined
  /** The target as sent. */
  readonly url?: string | undefined
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[]
}

/** What they take an answer with. */
export interface NodeResponse {
  /** What is sent unless something else is said. */
  statusCode: number
  /** Sends what is left. */
  end(): unknown
}

/**
 * Serves `api` over HTTP/1.1. Signals are left to the caller.
 *
 * @returns The server, once it accepts.
 * @throws {Error} when the address can't be listened on; `cause` says why.
 * @throws {RangeError} for a setting out of its range.
 * @example
 * ```ts
 * const server = await serve(api, { port: 0 })
 * process.once('SIGTERM', () => server.drain())
 * ```
 */
export async function serve(api: ServableApi, options: ServeOptions = {}): Promise<RunningServer> {
  const settings = resolveListenOptions(options)
  const { host, requestTimeoutMs, drainTimeoutMs } = settings
  const { headersTimeoutMs: headersLimitMs = 10_000, keepAliveTimeoutMs = 75_000, writeTimeoutMs = 60_000 } =
    options
  assertInteger('headersTimeoutMs', headersLimitMs, 0, MAX_TIMER_MS)
  assertInteger('keepAliveTimeoutMs', keepAliveTimeoutMs, 0, MAX_KEEP_ALIVE_MS)
  assertInteger('writeTimeoutMs', writeTimeoutMs, 0, MAX_TIMER_MS)
  const { maxConnections = defaultMaxConnections() } = options
  if (maxConnections !== Infinity && !(Number.isInteger(maxConnections) && maxConnections >= 1)) {
    throw new RangeError(`maxConnections must be an integer of 1 or more, and ${maxConnections} is not.`)
  }
  const headersTimeoutMs = requestTimeoutMs === 0
    ? headersLimitMs
    : Math.min(headersLimitMs, requestTimeoutMs)
  let isDraining = false
  let isFull = false

  const server = loadHttp().createServer({
    // Node drops a second Authorization, Host or key header unless told to join them.
    joinDuplicateHeaders: true,
    // A request without a body is no stream then: it never emits `end`.
    optimizeEmptyRequests: true,
    // `objectionTo` looks at Host: Node's own answer has no body.
    requireHostHeader: false,
    // Whatever flags the process runs with.
    insecureHTTPParser: false,
    maxHeaderSize: maxParserHeaderBytes,
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(1_000, Math.ceil((headersTimeoutMs || 4_000) / 4)) || 1_000,
  })
  server.maxHeadersCount = maxParserHeaders
  server.timeout = writeTimeoutMs
  // Undocumented, and as old as Node: a client may close its half after the request (RFC 9112 §9.6).
  Object.assign(server, { httpAllowHalfOpen: true })
  const pending = createPendingRequests()
  attachApi(server, api, () => isDraining, pending)
  const connections = new Set<Socket>()
  server.on('connection', (socket) => {
    connections.add(socket)
    if (connections.size === maxConnections && !isFull && !isDraining) {
      // Closed sockets keep their descriptors for a while, and Deno never accepts again once it had none left.
      isFull = true
      stopAccepting(server)
      api.connectionsRefused(maxConnections)
    }
    socket.once('close', () => {
      connections.delete(socket)
      if (isFull && connections.size < 0.9 * maxConnections) resumeAccepting()
    })
  })

  server.listen(settings.port, host)
  await once(server, 'listening').catch((cause: NodeJS.ErrnoException) => {
    throw listenError(settings, cause)
  })
  // A connection that can't be accepted is no reason to give up the others.
  server.on('error', () => setTimeout(resumeAccepting, 1_000))
  const { port } = server.address() as AddressInfo

  function resumeAccepting(): void {
    isFull = false
    if (!isDraining && !server.listening) server.listen(port, host)
  }

  async function drain(): Promise<void> {
    isDraining = true
    const closed = once(server, 'close')
    stopAccepting(server)
    const closeIdle = () => {
      for (const { writableLength } of connections) if (writableLength > 0) return
      server.close()
      // Up to Node 24 a connection that never asked for anything is not an idle one.
      for (const connection of connections) if (connection.bytesRead === 0) connection.destroy()
    }
    closeIdle()
    const interval = setInterval(closeIdle, 50)
    await waitForDrain(drainTimeoutMs, closed, pending, () => {
      for (const connection of connections) connection.destroy()
    })
    clearInterval(interval)
    await api.close()
  }

  return createRunningServer(host, port, drain)
}

/**
 * HTTP's own close() would also destroy connections whose answer is written but not taken yet. Where `node:http` is not
 * built on `node:net`, as on Bun, it is the only one.
 */
function stopAccepting(server: Server): void {
  if (server instanceof NetServer) NetServer.prototype.close.call(server)
}

/**
 * The service for a server that has more to do and hands out Node's own requests: Express, Fastify, Connect, `node:http`,
 * `node:http2`.
 * It belongs before whatever reads bodies. How requests are framed, and how long they may take, is the server's affair.
 *
 * @returns Answers a request; resolves when the answer has been handed over.
 * @example
 * ```ts
 * app.use(['/service', '/.well-known/api-catalog'], createListener(api))
 * ```
 */
export function createListener(
  api: Pick<ServableApi, 'handle'>,
): (request: NodeRequest, response: NodeResponse) => Promise<void> {
  return async (nodeRequest, nodeResponse) => {
    const request = nodeRequest as IncomingMessage
    const response = nodeResponse as ServerResponse
    // Express and Connect cut off what they matched.
    const { originalUrl } = request as { readonly originalUrl?: string }
    const target = toOriginForm(originalUrl ?? request.url as string)
    const result = await api.handle(new MountedHttpRequest(request, response, target ?? '/', false))
    if (!response.destroyed) writeResponse(response, result, false)
  }
}
