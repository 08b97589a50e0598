import type { PartnerApi } from '../../core/api.ts'
import type { ProblemCode } from '../../core/http/problem.ts'

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
  assertInteger('port', port, 65_535)
  assertInteger('requestTimeoutMs', requestTimeoutMs, MAX_TIMEOUT_MS)
  assertInteger('drainTimeoutMs', drainTimeoutMs, MAX_TIMEOUT_MS)
  return { port, host, requestTimeoutMs, drainTimeoutMs }
}

/** The longest that a timer can wait. */
export const MAX_TIMEOUT_MS: number = 2 ** 31 - 1

/** @throws {RangeError} unless `value` is an integer from 0 to `max`. */
export function assertInteger(name: string, value: number, max: number): void {
  if (Number.isInteger(value) && value >= 0 && value <= max) return
  throw new RangeError(`${name} must be an integer from 0 to ${max}, and ${value} is not.`)
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

/** A request whose body may still be arriving. */
interface PendingRequest {
  fail(code: ProblemCode): void
}

/** Requests whose answers are awaited. */
export interface PendingRequests {
  /** Holds the request until its answer, which never rejects, is there. */
  add(request: PendingRequest, answer: Promise<unknown>): void
  /** Answers with 408 where the body has not arrived. */
  timeOutBodies(): void
  /** Resolves when every answer is there. */
  whenIdle(): Promise<void>
}

/** Makes an empty set of requests. */
export function createPendingRequests(): PendingRequests {
  const requests = new Map<PendingRequest, Promise<unknown>>()
  return {
    add(request, answer) {
      requests.set(request, answer.then(() => requests.delete(request)))
    },
    timeOutBodies() {
      for (const request of requests.keys()) request.fail('request_timeout')
    },
    async whenIdle() {
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

/** Waits for `work`, and no longer than so many milliseconds. @returns Whether it ended in time. */
export async function completesWithin(milliseconds: number, work: Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timedOut = new Promise<boolean>((resolve) => timer = setTimeout(() => resolve(false), milliseconds))
  try {
    return await Promise.race([work.then(() => true), timedOut])
  } finally {
    clearTimeout(timer)
  }
}
