/**
 * Serves on Bun, straight from `Bun.serve`.
 *
 * @module
 */
import { createResponseConverter, FetchRequest } from '../../core/http/fetch.ts'
import type { MaybePromise } from '../../core/lib/promise.ts'
import { assertInteger } from '../../core/lib/validate.ts'
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

/** Settings of the server. All have defaults. */
export interface ServeOptions extends ListenOptions {
  /**
   * Milliseconds for which a connection is kept on which nothing moves, 0–255,000, default 75,000: longer than the 60 s
   * of the usual balancers. It is also the time in which a client has to take more of its answer, because Bun has one
   * timer for both. Bun counts in steps of up to 4 s; 0 keeps connections for good.
   */
  readonly keepAliveTimeoutMs?: number
}

/**
 * What Bun's server does in its own way, whatever is asked of it. It answers by itself what its parser refuses, with a
 * status and without a problem: heads over 16 KiB (`bun --max-http-header-size` allows more) or of more than about 200
 * fields with 431, bad framing with 400, other versions with 505. A head has 10 to 12 s. The URL of a request is
 * resolved, so that dot segments are gone, and backslashes are slashes, before they can be refused. A connection is
 * closed, and the answer with it, when it brings a request before the one under way is answered.
 */
interface BunServer {
  readonly port: number
  readonly pendingRequests: number
  requestIP(request: Request): { readonly address: string } | null
  stop(closeActiveConnections?: boolean): Promise<void>
}

interface BunServeOptions {
  /** Seconds. */
  readonly idleTimeout: number
  readonly maxRequestBodySize: number
  readonly development: false
  readonly reusePort: false
  fetch(request: Request, server: BunServer): Response | Promise<Response>
}

interface BunRuntime {
  serve(options: BunServeOptions & { readonly port: number; readonly hostname: string }): BunServer
}

/**
 * Serves `api` over HTTP/1.1. Signals are left to the caller.
 *
 * @returns The server, which accepts.
 * @throws {Error} when the address can't be listened on; `cause` says why.
 * @throws {RangeError} for a setting out of its range.
 * @example
 * ```ts
 * const server = await serve(api, { port: 0 })
 * process.once('SIGTERM', () => server.drain())
 * ```
 */
export function serve(api: ServableApi, options: ServeOptions = {}): Promise<RunningServer> {
  return new Promise((resolve) => resolve(startServer(api, options)))
}

function startServer(api: ServableApi, options: ServeOptions): RunningServer {
  const settings = resolveListenOptions(options)
  const { host, requestTimeoutMs, drainTimeoutMs } = settings
  const { keepAliveTimeoutMs = 75_000 } = options
  assertInteger('keepAliveTimeoutMs', keepAliveTimeoutMs, 0, 255_000)

  const respond = createResponseConverter(() => api.refuse('internal'))
  const pending = createPendingRequests()
  const server = listen(settings, {
    idleTimeout: Math.ceil(keepAliveTimeoutMs / 1000),
    // The service counts by itself: Bun's own answer has no body.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    // Its default in production is to share the port with whoever has it.
    reusePort: false,
    fetch(request, server) {
      const exchange = new BunHttpRequest(request, server, requestTimeoutMs)
      const answer = api.handle(exchange)
      if (!(answer instanceof Promise)) return respond(answer)
      pending.add(exchange, answer)
      return answer.then(respond)
    },
  })
  return createRunningServer(host, server.port, async () => {
    await waitForDrain(drainTimeoutMs, stopServer(server), pending, () => server.stop(true))
    await api.close()
  })
}

function listen(settings: Required<ListenOptions>, serving: BunServeOptions): BunServer {
  const { Bun } = globalThis as unknown as { readonly Bun: BunRuntime }
  const { port, host: hostname } = settings
  try {
    return Bun.serve({ port, hostname, ...serving })
  } catch (cause) {
    throw listenError(settings, normalizeListenError(cause as Error & { code?: string }))
  }
}

/** Stops accepting, and ends with the last answer: by itself Bun waits for connections that never asked for anything. */
async function stopServer(server: BunServer): Promise<void> {
  const closeIdle = (): void => {
    if (server.pendingRequests === 0) server.stop(true)
  }
  const interval = setInterval(closeIdle, 50)
  await server.stop()
  clearInterval(interval)
}

/** A class for its prototype, as what it extends. */
class BunHttpRequest extends FetchRequest {
  readonly #server: BunServer
  readonly #timeoutMs: number

  /** @param timeoutMs Milliseconds in which a body must have arrived once it is asked for; 0 for no limit. */
  constructor(request: Request, server: BunServer, timeoutMs: number) {
    super(request)
    this.#server = server
    this.#timeoutMs = timeoutMs
  }

  override body(maxBytes: number): MaybePromise<Uint8Array> {
    const body = super.body(maxBytes)
    if (!(body instanceof Promise) || this.#timeoutMs === 0) return body
    const timer = setTimeout(() => this.fail('request_timeout'), this.#timeoutMs)
    return body.finally(() => clearTimeout(timer))
  }

  override get address(): string | undefined {
    return this.#server.requestIP(this.request)?.address
  }
}

/** What is wrong with an address that can't be listened on: a name that nobody knows is EINVAL to Bun. */
function normalizeListenError(cause: Error & { code?: string }): Error & { code?: string } {
  return cause.code === 'EINVAL' ? Object.assign(cause, { code: 'ENOTFOUND' }) : cause
}
