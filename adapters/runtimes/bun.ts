/**
 * Serves on Bun, directly from `Bun.serve`.
 *
 * @module
 */
import { FetchRequest } from '../../core/http/fetch.ts'
import type { HttpResponse } from '../../core/http/message.ts'
import { internalsOf } from '../../core/internals.ts'
import { assertInteger, assertOptions } from '../../core/lib/options.ts'
import type { MaybePromise } from '../../core/lib/promise.ts'
import { createBunResponseConverter } from './bun-response.ts'
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

export type { RunningServer, ServableApi }

/** Settings of the server. All have defaults. */
export interface ServeOptions extends ListenOptions {
  /**
   * Milliseconds after which a connection without traffic is closed, 0–255,000, default 75,000: longer than the
   * 60 s of common load balancers; 0 for no limit. It is also the time in which a client must read more of its
   * response, because Bun has one timer for both. Bun counts in steps of up to 4 s.
   */
  readonly keepAliveTimeoutMs?: number
}

/** Milliseconds from the drain until connections are refused. */
const takeOverMs = 50

/** The part of Bun's server that is used here. It answers what its parser rejects, without a problem body. */
interface BunServer {
  readonly port: number
  readonly pendingRequests: number
  requestIP(request: Request): { readonly address: string } | null
  stop(closeActiveConnections?: boolean): Promise<void>
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
// deno-lint-ignore require-await -- Bun starts at once; the other runtimes' servers do not, and errors must reject.
export async function serve(api: ServableApi, options: ServeOptions = {}): Promise<RunningServer> {
  assertOptions('serve', options, { ...LISTEN_OPTIONS, keepAliveTimeoutMs: 'a number' })
  const settings = resolveListenOptions(options)
  const { keepAliveTimeoutMs = 75_000 } = options
  assertInteger('keepAliveTimeoutMs', keepAliveTimeoutMs, 0, 255_000)

  const { refuse } = internalsOf(api)
  const convert = createBunResponseConverter((error) => refuse('internal', undefined, error))
  const pending = createPendingRequests(settings.requestTimeoutMs)
  function respond(request: BunRequest, response: HttpResponse): Response {
    pending.end(request)
    return convert(
      pending.isDraining ? { ...response, headers: [...response.headers, 'Connection', 'close'] } : response,
    )
  }
  function answer(request: BunRequest): MaybePromise<Response> {
    const response = api.handle(request)
    if (!(response instanceof Promise)) return respond(request, response)
    pending.begin(request)
    return response.then((later) => respond(request, later))
  }
  const server = listen({
    port: settings.port,
    hostname: settings.host,
    // Seconds.
    idleTimeout: Math.ceil(keepAliveTimeoutMs / 1000),
    // The service limits bodies itself: Bun's own response has no body.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    // Bun's default in production is true.
    reusePort: settings.reusePort,
    fetch(request: Request, server: BunServer): Response | Promise<Response> {
      const httpRequest = new BunRequest(request, server)
      // A target has no fragment (RFC 9112 §3.2): Bun keeps it.
      if (request.url.includes('#')) {
        return respond(httpRequest, refuse('malformed_request', httpRequest.address))
      }
      if (!httpRequest.hasSmallBody) return answer(httpRequest)
      pending.begin(httpRequest)
      return httpRequest.arrive(answer)
    },
  })
  return createRunningServer(api, settings, server.port, pending, {
    // Bun closes idle connections when it stops. Until then, the next request of a busy one gets a
    // response that closes it.
    takeOver: () => new Promise((resolve) => setTimeout(resolve, takeOverMs)),
    async stop() {
      // Bun alone would also wait for connections without any request.
      const interval = setInterval(() => server.pendingRequests > 0 || server.stop(true), 50)
      await server.stop()
      clearInterval(interval)
    },
    forceClose: () => server.stop(true),
  })
}

function listen(
  options: Readonly<Record<string, unknown>> & { readonly port: number; readonly hostname: string },
): BunServer {
  const { Bun } = globalThis as unknown as { readonly Bun: { serve: typeof listen } }
  try {
    return Bun.serve(options)
  } catch (cause) {
    const error = cause as Error & { code?: string }
    // Bun reports an unknown host name as EINVAL.
    if (error.code === 'EINVAL') error.code = 'ENOTFOUND'
    throw listenError(options.hostname, options.port, error)
  }
}

class BunRequest extends FetchRequest {
  readonly #server: BunServer

  constructor(request: Request, server: BunServer) {
    super(request)
    this.#server = server
  }

  /** The address of the peer, which takes a system call. */
  override get address(): string | undefined {
    return this.#server.requestIP(this.request)?.address
  }

  get hasAddress(): true {
    return true
  }

  /** Whether the client has gone. Not in `FetchRequest`, since Deno's own server warns about reads of the signal. */
  get isAborted(): boolean {
    return this.request.signal.aborted
  }
}
