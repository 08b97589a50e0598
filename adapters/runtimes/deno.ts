/**
 * Serves on Deno, straight from `Deno.serve`.
 *
 * @module
 */
import { createResponder } from '../../core/http/responses.ts'
import {
  cannotListen,
  type ListenOptions,
  type Mounted,
  type RunningServer,
  runningServer,
  settleListening,
  within,
} from './listening.ts'
import { ServedExchange } from './served-exchange.ts'

export type { ListenOptions, Mounted, RunningServer }

/** What `Deno.serve` tells of a request beside it. */
interface Info {
  readonly remoteAddr: { readonly hostname?: string }
}

/**
 * What Deno's server does in its own way, whatever is asked of it. It answers by itself what its parser refuses, with a
 * status and without a problem, or closes the connection. It has no time limit for heads and idle connections: put a
 * proxy in front. It takes a bare LF for a line break, headers up to 64 KiB, and a request without Host. It closes a
 * connection behind a body that did not come together with its head.
 */
interface DenoServer {
  readonly addr: { readonly port: number }
  shutdown(): Promise<void>
}

type Handler = (request: Request, info: Info) => Response | Promise<Response>

interface DenoRuntime {
  serve(options: {
    readonly port: number
    readonly hostname: string
    readonly automaticCompression: false
    onListen(): void
  }, handler: Handler): DenoServer
}

/**
 * Serves `api` over HTTP/1.1, and over HTTP/2 to clients that begin with it. Signals are left to the caller.
 *
 * @returns The server, which accepts.
 * @throws {Error} when the address can't be listened on; `cause` says why.
 * @throws {RangeError} for a setting out of its range.
 * @example
 * ```ts
 * const server = await serve(api, { port: 0 })
 * Deno.addSignalListener('SIGTERM', () => server.drain())
 * ```
 */
export function serve(api: Mounted, options: ListenOptions = {}): Promise<RunningServer> {
  return new Promise((resolve) => resolve(start(api, options)))
}

function start(api: Mounted, options: ListenOptions): RunningServer {
  const settings = settleListening(options)
  const { host, requestTimeoutMs, drainTimeoutMs } = settings

  const respond = createResponder(() => api.refuse('internal'))
  const server = listen(settings, (request, info) => {
    const answer = api.handle(new DenoExchange(request, info, requestTimeoutMs))
    return answer instanceof Promise ? answer.then(respond) : respond(answer)
  })
  return runningServer(host, server.addr.port, async () => {
    // What is left then ends with the process: to abort a server that is shutting down is an uncaught error.
    await within(drainTimeoutMs, server.shutdown())
    await api.close()
  })
}

function listen(settings: Required<ListenOptions>, handler: Handler): DenoServer {
  const { Deno } = globalThis as unknown as { readonly Deno: DenoRuntime }
  const { port, host: hostname } = settings
  // The bytes of an answer are those that its ETag was made of.
  const serving = { automaticCompression: false, onListen: () => undefined } as const
  try {
    return Deno.serve({ port, hostname, ...serving }, handler)
  } catch (cause) {
    throw cannotListen(settings, named(cause as Error & { code?: string }))
  }
}

/** A class for its prototype, as what it extends. */
class DenoExchange extends ServedExchange {
  readonly #info: Info

  constructor(request: Request, info: Info, timeoutMs: number) {
    super(request, timeoutMs)
    this.#info = info
  }

  override get address(): string | undefined {
    return this.#info.remoteAddr.hostname
  }
}

/** What is wrong with an address that can't be listened on: only a name that nobody knows has no code. */
function named(cause: Error & { code?: string }): Error & { code?: string } {
  return cause.code === undefined ? Object.assign(cause, { code: 'ENOTFOUND' }) : cause
}
