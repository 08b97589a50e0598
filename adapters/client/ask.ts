import { NoAnswer, PartnerProblem } from './partner-problem.ts'
import type { KeyedRequest } from './request.ts'
import type { Problem } from '../../core/wire.ts'

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

/** The middle of the pauses before an attempt once there were many: with what is drawn, none is over half a minute. */
const MIDDLE_PAUSE_MS = 20_000

/** What may be over the next time: a quota, a gateway, a store, a first attempt that is still running. */
const passing: readonly number[] = [408, 409, 429, 500, 502, 503, 504]

/**
 * Asks what may be asked again, whatever became of it (a read, or what has an idempotency key), and does so where that
 * may help: as soon as `Retry-After` allows, and else after a pause that doubles, up to half a minute.
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
  // Not every `fetch` that somebody gives looks before it sends.
  signal?.throwIfAborted()
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
  const asked = error.retryAfterSeconds
  if (asked !== undefined) return asked > maxRetryAfterSeconds ? undefined : asked * 1000
  // Not all at once: who failed together would come back together.
  return Math.min(250 * 2 ** attempt, MIDDLE_PAUSE_MS) * (0.5 + Math.random())
}

async function askOnce(
  { url, ...request }: KeyedRequest,
  { timeoutMs, fetch }: Sending,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  // What is said of it has no query: what a partner asks for is nobody's business.
  const { origin } = new URL(url)
  const timeout = AbortSignal.timeout(timeoutMs)
  // Here, because what can't even be sent is no affair of the service.
  const asked = new Request(url, {
    ...request,
    // Followed, it would carry the key to wherever it points.
    redirect: 'manual',
    signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
  })
  const { response, text } = await fetch(asked)
    .then(async (response) => ({ response, text: await response.text() }))
    .catch((cause) => {
      throw new NoAnswer(`${origin} did not answer${failureOf(cause, timeoutMs)}.`, { cause })
    })
  const { status, ok, headers } = response
  const answer = parse(text)
  if (ok && isObject(answer) && 'data' in answer) return answer
  const retryAfterSeconds = secondsOf(headers.get('retry-after'))
  if (isProblem(answer, status)) throw new PartnerProblem(answer, retryAfterSeconds)
  const message = `What answered at ${origin} with status ${status} is not the service.`
  throw new NoAnswer(message, { status, retryAfterSeconds })
}

/**
 * Runtimes say why a request failed in a code (Node, Bun) or in words (Deno), on the error or on a cause of it. The
 * first pattern that matches decides.
 */
const failures: readonly (readonly [pattern: RegExp, failure: string])[] = [
  [/ENOTFOUND|EAI_AGAIN|dns error/i, 'its host name could not be resolved (DNS)'],
  [/ECONNREFUSED|connection refused/i, 'the connection was refused'],
  [/ETIMEDOUT|CONNECT_TIMEOUT|timed out/i, 'the connection timed out'],
  [/ECONNRESET|EPIPE|ERR_SOCKET|terminated|reset by peer/i, 'the connection was closed'],
  [/CERT|SSL|TLS|EPROTO|UNABLE_TO|received corrupt message/i, 'the TLS handshake failed'],
]

/** @returns Why nothing answered, as the end of a sentence; empty where the runtime does not say. */
function failureOf(error: unknown, timeoutMs: number): string {
  let text = ''
  for (let one = error, depth = 0; isObject(one) && depth < 5; one = one['cause'], depth++) {
    if (one['name'] === 'TimeoutError') return ` within ${timeoutMs} ms`
    text += ` ${one['code']} ${one['message']}`
  }
  // Deno repeats the URL, and a URL may hold any of these words.
  text = text.replace(/https?:\S+/g, '')
  const [pattern, failure] = failures.find(([pattern]) => pattern.test(text)) ?? []
  if (pattern === undefined) return ''
  const [code] = /\b[A-Z]+_[A-Z_]+\b/.exec(text) ?? []
  return `: ${failure}${code === undefined ? '' : ` (${code})`}`
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

/** Others have problems, too: what the service sends repeats its status and names the request. */
function isProblem(value: unknown, status: number): value is Problem {
  return isObject(value) && value['status'] === status &&
    ['code', 'detail', 'request_id'].every((name) => typeof value[name] === 'string')
}

/** RFC 9110 §10.2.3: seconds, as the service sends it, or a date, as others in front of it may. */
function secondsOf(retryAfter: string | null): number | undefined {
  if (retryAfter === null) return undefined
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter)
  const date = retryAfter.endsWith(' GMT') ? Date.parse(retryAfter) : NaN
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - Date.now()) / 1000))
}
