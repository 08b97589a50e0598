import type { PartnerApi } from '../../core/api.ts'
import type { ProblemCode } from '../../core/http/problem.ts'
import { completesWithin } from '../../core/lib/promise.ts'
import { assertInteger, MAX_TIMER_MS, type OptionKinds } from '../../core/lib/options.ts'

/** What a server needs of the service. */
export type ServableApi = Pick<PartnerApi, 'handle' | 'close'>

/** Settings of every server. All have defaults. */
export interface ListenOptions {
  /** 0–65,535, default 8787; 0 takes a free port. */
  readonly port?: number
  /** Name or address of the interface to listen on, default `127.0.0.1`. */
  readonly host?: string
  /**
   * Milliseconds in which a request must arrive, default 30,000; 0 for no limit. Node and Deno count from its first
   * byte, Bun from the end of its head.
   */
  readonly requestTimeoutMs?: number
  /**
   * Milliseconds that `close` allows for pending requests, default 10,000. A request whose body has not arrived after
   * half of that time is answered with 408.
   */
  readonly drainTimeoutMs?: number
  /**
   * Share the port with other processes that do so (`SO_REUSEPORT`), default false: the kernel spreads connections over
   * them. Linux and FreeBSD only.
   */
  readonly reusePort?: boolean
}

/** A server that accepts requests. */
export interface RunningServer {
  /** `http://HOST:PORT`, without a trailing slash. */
  readonly url: string
  /** The name or address as configured. */
  readonly host: string
  /** The actual port. */
  readonly port: number
  /**
   * Stops accepting, closes idle connections, waits for pending responses, then closes the service. After
   * `drainTimeoutMs`, remaining connections are closed by force. Every call returns the same promise.
   *
   * @param delay The server first continues until this is fulfilled, so that a balancer notices: from now on, every
   * response closes its connection, so that few clients are left to lose theirs.
   */
  close(delay?: Promise<unknown>): Promise<void>
}

/** The names of the options of every server. */
export const LISTEN_OPTIONS: OptionKinds<ListenOptions> = {
  port: 'a number',
  host: 'a text',
  requestTimeoutMs: 'a number',
  drainTimeoutMs: 'a number',
  reusePort: 'true or false',
}

/** Applies the defaults. @throws {RangeError} for a setting out of its range. */
export function resolveListenOptions(options: ListenOptions): Required<ListenOptions> {
  const {
    port = 8787,
    host = '127.0.0.1',
    requestTimeoutMs = 30_000,
    drainTimeoutMs = 10_000,
    reusePort = false,
  } = options
  assertInteger('port', port, 0, 65_535)
  assertInteger('requestTimeoutMs', requestTimeoutMs, 0, MAX_TIMER_MS)
  assertInteger('drainTimeoutMs', drainTimeoutMs, 0, MAX_TIMER_MS)
  return { port, host, requestTimeoutMs, drainTimeoutMs, reusePort }
}

/** The error for an address that can't be listened on. @param cause The runtime's own, with a `code`. */
export function listenError(host: string, port: number, cause: Error & { readonly code?: string }): Error {
  const reason = cause.code === 'EADDRINUSE' ? 'the address is in use' : cause.message
  return new Error(`Cannot listen on ${host}:${port}: ${reason}`, { cause })
}

interface PendingRequest {
  fail(code: ProblemCode): void
}

/** The requests whose responses are pending. */
export interface PendingRequests {
  /** Whether every response closes its connection. */
  isDraining: boolean
  begin(request: PendingRequest): void
  end(request: PendingRequest): void
  /** Answers 408 to requests that began until then and whose body has not arrived. */
  timeOutBodies(latest: number): void
  /** Resolves when no response is pending. */
  whenIdle(): Promise<void>
}

/** @param bodyTimeoutMs Milliseconds in which a body must arrive; 0 for no limit, or if the runtime has its own. */
export function createPendingRequests(bodyTimeoutMs: number): PendingRequests {
  /** The pending requests, each with the instant at which it began, the oldest first. */
  const requests = new Map<PendingRequest, number>()
  let sweep: ReturnType<typeof setInterval> | undefined
  let onIdle = (): void => undefined

  function timeOutBodies(latest: number): void {
    for (const [request, begunAt] of requests) {
      if (begunAt > latest) return
      request.fail('request_timeout')
    }
  }

  /** A timer for each request would take longer than a small request. */
  function timeOutOldBodies(): void {
    if (requests.size === 0) sweep = void clearInterval(sweep)
    timeOutBodies(performance.now() - bodyTimeoutMs)
  }

  return {
    isDraining: false,
    timeOutBodies,
    begin(request) {
      if (!requests.has(request)) requests.set(request, performance.now())
      if (bodyTimeoutMs > 0) sweep ??= setInterval(timeOutOldBodies, Math.min(1_000, bodyTimeoutMs / 4))
    },
    end(request) {
      if (requests.delete(request) && requests.size === 0) onIdle()
    },
    async whenIdle() {
      while (requests.size > 0) await new Promise<void>((resolve) => onIdle = resolve)
    },
  }
}

/** How a runtime stops its server. */
interface Stop {
  /** Takes over the connections that wait for the server: the system resets them when the listener closes. */
  takeOver(): Promise<unknown>
  /** Stops accepting. Resolves when the last connection is closed. */
  stop(): Promise<unknown>
  /** Closes the remaining connections. */
  forceClose(): unknown
}

/** How long a handler may continue after its connection was closed by force, in milliseconds. */
const handlerGraceMs = 1_000

/** A server that listens. `close` waits up to `drainTimeoutMs` for requests, then ends connections and the service. */
export function createRunningServer(
  api: ServableApi,
  { host, drainTimeoutMs }: Required<ListenOptions>,
  port: number,
  pending: PendingRequests,
  { takeOver, stop, forceClose }: Stop,
): RunningServer {
  let closing: Promise<void> | undefined
  async function close(delay?: Promise<unknown>): Promise<void> {
    pending.isDraining = true
    await delay
    await takeOver()
    const done = stop().then(pending.whenIdle)
    if (!await completesWithin(drainTimeoutMs / 2, done)) {
      pending.timeOutBodies(Infinity)
      if (!await completesWithin(drainTimeoutMs / 2, done)) {
        forceClose()
        await completesWithin(handlerGraceMs, done)
      }
    }
    await api.close()
  }
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  return { url, host, port, close: (delay) => closing ??= close(delay) }
}
