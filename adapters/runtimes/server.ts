import type { PartnerApi } from '../../core/api.ts'
import type { ProblemCode } from '../../core/http/problem.ts'
import { completesWithin } from '../../core/lib/promise.ts'
import { assertInteger, MAX_TIMER_MS } from '../../core/lib/validate.ts'

/** What a server needs of the service. */
export type ServableApi = Pick<PartnerApi, 'handle' | 'refuse' | 'connectionsRefused' | 'close'>

/** Where a server of a runtime listens, and how long it waits. All have defaults. */
export interface ListenOptions {
  /** 0–65,535, default 8787; 0 takes a free one. */
  readonly port?: number
  /** Name or address of the interface to listen on, default `127.0.0.1`. */
  readonly host?: string
  /**
   * Milliseconds in which a request must have arrived, default 30,000; 0 for no limit. Node and Deno count from its
   * first byte, Bun from when its body is waited for.
   */
  readonly requestTimeoutMs?: number
  /**
   * Milliseconds that `drain` gives to what is under way, default 10,000. A body that has not arrived after half of
   * them is answered with 408.
   */
  readonly drainTimeoutMs?: number
}

/** A server that accepts requests. */
export interface RunningServer {
  /** `http://HOST:PORT`, without a slash at the end. */
  readonly url: string
  /** As it was asked for. */
  readonly host: string
  /** The port that was taken. */
  readonly port: number
  /**
   * Stops accepting, closes idle connections, lets the answers under way finish, then closes the service. What is
   * left after `drainTimeoutMs` is cut off. Every call gives the same promise.
   */
  drain(): Promise<void>
}

/** The settings with their defaults. @throws {RangeError} for one out of its range. */
export function resolveListenOptions(options: ListenOptions): Required<ListenOptions> {
  const { port = 8787, host = '127.0.0.1', requestTimeoutMs = 30_000, drainTimeoutMs = 10_000 } = options
  assertInteger('port', port, 0, 65_535)
  assertInteger('requestTimeoutMs', requestTimeoutMs, 0, MAX_TIMER_MS)
  assertInteger('drainTimeoutMs', drainTimeoutMs, 0, MAX_TIMER_MS)
  return { port, host, requestTimeoutMs, drainTimeoutMs }
}

/** What a server that listens is told to be. */
export function createRunningServer(
  host: string,
  port: number,
  drain: () => Promise<void>,
): RunningServer {
  let draining: Promise<void> | undefined
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    host,
    port,
    drain: () => draining ??= drain(),
  }
}

/** The requests whose responses are pending. */
export type PendingRequests = ReturnType<typeof createPendingRequests>

export function createPendingRequests() {
  const requests = new Map<{ fail(code: ProblemCode): void }, Promise<unknown>>()
  return {
    /** @param response Never rejects. */
    add(request: { fail(code: ProblemCode): void }, response: Promise<unknown>): void {
      requests.set(request, response.then(() => requests.delete(request)))
    },
    /** Answers 408 to every request whose body has not arrived. */
    timeOutBodies(): void {
      for (const request of requests.keys()) request.fail('request_timeout')
    },
    async whenIdle(): Promise<void> {
      while (requests.size > 0) await Promise.all(requests.values())
    },
  }
}

/** How long a handler may go on when its connection was cut off, in milliseconds. */
const handlerGraceMs = 1_000

/**
 * Waits for a server that accepts no more.
 *
 * @param closed Resolves when the last connection is closed.
 * @param forceClose Closes the connections that are left.
 */
export async function waitForDrain(
  timeoutMs: number,
  closed: Promise<unknown>,
  pending: PendingRequests,
  forceClose: () => unknown,
): Promise<void> {
  const done = closed.then(pending.whenIdle)
  const half = timeoutMs / 2
  if (await completesWithin(half, done)) return
  pending.timeOutBodies()
  if (await completesWithin(timeoutMs - half, done)) return
  forceClose()
  await completesWithin(handlerGraceMs, done)
}

/** The error for an address that can't be listened on. @param cause The runtime's own; `code` says why. */
export function listenError(
  { host, port }: Required<ListenOptions>,
  cause: Error & { readonly code?: string },
): Error {
  const reason = cause.code === 'EADDRINUSE' ? 'the address is in use' : cause.message
  return new Error(`Cannot listen on ${host}:${port}: ${reason}`, { cause })
}
