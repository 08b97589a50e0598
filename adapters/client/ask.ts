import { NoAnswer, PartnerProblem } from './partner-problem.ts'
import type { KeyedRequest } from './request.ts'
import type { Problem } from './wire/problem.ts'

/** How requests are sent. */
export interface Sending {
  /** Milliseconds for one attempt, its answer included. */
  readonly timeoutMs: number
  /** How often a request is sent again. */
  readonly retries: number
  /** Whole seconds: a service that asks for more is not waited for. */
  readonly maxRetryAfterSeconds: number
  readonly fetch: (request: Request) => Promise<Response>
}

/** What may be over the next time: a quota, a gateway, a store, a first attempt that is still running. */
const passing: readonly number[] = [408, 409, 429, 500, 502, 503, 504]
/**
 * Asks what may be asked again, whatever became of it (a read, or what has an idempotency key), and does so where that may help: as soon as `Retry-After` allows, and else after a pause that doubles.
 *
 * @returns The body of a success, as JSON.
 * @throws {PartnerProblem} for what the service refused.
 * @throws {NoAnswer} when nothing, or something else, answered.
 * @throws The reason of `signal`, when that is aborted.
 */
export async function ask(
  request: KeyedRequest,
  sending: Sending,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  for (let attempt = 0;; attempt++) {
    try {
      return await askOnce(request, sending, signal)
    } catch (error) {
      signal?.throwIfAborted()
      const pauseMs = pauseBefore(error, attempt, sending)
      if (pauseMs === undefined) throw error
      await pause(pauseMs, signal)
    }
  }
}

/** @returns Milliseconds until the next attempt, or `undefined` when there is to be none. */
function pauseBefore(error: unknown, attempt: number, sending: Sending): number | undefined {
  const { retries, maxRetryAfterSeconds } = sending
  if (attempt >= retries || !(error instanceof PartnerProblem || error instanceof NoAnswer)) return undefined
  if (error.status !== undefined && !passing.includes(error.status)) return undefined
  const asked = error instanceof PartnerProblem ? error.retryAfterSeconds : undefined
  if (asked !== undefined) return asked > maxRetryAfterSeconds ? undefined : asked * 1000
  // Not all at once: who failed together would come back together.
  return 250 * 2 ** attempt * (0.5 + Math.random())
}

async function askOnce(
  { url, ...request }: KeyedRequest,
  { timeoutMs, fetch }: Sending,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const timeout = AbortSignal.timeout(timeoutMs)
  let status: number | undefined
  try {
    const response = await fetch(
      new Request(url, {
        ...request,
        // Followed, it would carry the key to wherever it points.
        redirect: 'manual',
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
      }),
    )
    status = response.status
    const answer = parse(await response.text())
    if (response.ok && isObject(answer) && 'data' in answer) return answer
    if (isProblem(answer)) throw new PartnerProblem(answer, secondsOf(response.headers.get('retry-after')))
  } catch (error) {
    if (error instanceof PartnerProblem) throw error
    throw new NoAnswer(`${originOf(url)} did not answer.`, status, { cause: error })
  }
  throw new NoAnswer(`What answered at ${originOf(url)} with status ${status} is not the service.`, status)
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', abort, { once: true })
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function isProblem(value: unknown): value is Problem & Record<string, unknown> {
  return isObject(value) && typeof value['code'] === 'string' && typeof value['detail'] === 'string'
}

/** RFC 9110 §10.2.3, as the service sends it. */
function secondsOf(retryAfter: string | null): number | undefined {
  return retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined
}

/** No query: what a partner asks for is nobody's business. */
function originOf(url: string): string {
  return new URL(url).origin
}
