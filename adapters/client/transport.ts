import { delay } from '../../core/lib/promise.ts'
import type { Problem } from '../../core/wire.ts'
import { PartnerProblem, ServiceUnreachableError } from './errors.ts'

/** How requests are sent. */
export interface TransportOptions {
  /** Milliseconds for one attempt, its answer included. */
  readonly timeoutMs: number
  /** How often a request is sent again. */
  readonly retries: number
  /** Whole seconds: a service that asks for more is not waited for. */
  readonly maxRetryAfterSeconds: number
  readonly fetch: (request: Request) => Promise<Response>
}

/** The middle of the pauses before an attempt once there were many: with what is drawn, none is over half a minute. */
const MAX_MEAN_DELAY_MS = 20_000

/** What may be over the next time: a quota, a gateway, a store, a first attempt that is still running. */
const RETRYABLE_STATUS: readonly number[] = [408, 409, 429, 500, 502, 503, 504]

/**
 * Asks what may be asked again, whatever became of it (a read, or what has an idempotency key), and does so where that
 * may help: as soon as `Retry-After` allows, and else after a pause that doubles, up to half a minute.
 *
 * @returns The body of a success, as JSON.
 * @throws {PartnerProblem} for what the service refused.
 * @throws {ServiceUnreachableError} when nothing, or something else, answered.
 * @throws The reason of `signal`, when that is aborted.
 */
export async function sendWithRetries(
  request: AuthenticatedRequest,
  options: TransportOptions,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  // Not every `fetch` that somebody gives looks before it sends.
  signal?.throwIfAborted()
  for (let attempt = 0;; attempt++) {
    try {
      return await sendOnce(request, options, signal)
    } catch (error) {
      signal?.throwIfAborted()
      const delayMs = retryDelayMs(error, attempt, options)
      if (delayMs === undefined) throw error
      await delay(delayMs, signal)
    }
  }
}

/** @returns Milliseconds until the next attempt, or `undefined` when there is to be none. */
function retryDelayMs(error: unknown, attempt: number, options: TransportOptions): number | undefined {
  const { retries, maxRetryAfterSeconds } = options
  if (attempt >= retries || !(error instanceof PartnerProblem || error instanceof ServiceUnreachableError)) {
    return undefined
  }
  if (error.status !== undefined && !RETRYABLE_STATUS.includes(error.status)) return undefined
  const retryAfterSeconds = error.retryAfterSeconds
  if (retryAfterSeconds !== undefined) {
    return retryAfterSeconds > maxRetryAfterSeconds ? undefined : retryAfterSeconds * 1000
  }
  // Not all at once: who failed together would come back together.
  return Math.min(250 * 2 ** attempt, MAX_MEAN_DELAY_MS) * (0.5 + Math.random())
}

async function sendOnce(
  { url, ...request }: AuthenticatedRequest,
  { timeoutMs, fetch }: TransportOptions,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  // What is said of it has no query: what a partner asks for is nobody's business.
  const { origin } = new URL(url)
  const timeout = AbortSignal.timeout(timeoutMs)
  // Here, because what can't even be sent is no affair of the service.
  const webRequest = new Request(url, {
    ...request,
    // Followed, it would carry the key to wherever it points.
    redirect: 'manual',
    signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
  })
  const { response, text } = await fetch(webRequest)
    .then(async (response) => ({ response, text: await response.text() }))
    .catch((cause) => {
      throw new ServiceUnreachableError(`${origin} did not answer${describeFailure(cause, timeoutMs)}.`, {
        cause,
      })
    })
  const { status, ok, headers } = response
  const body = parseJson(text)
  if (ok && isObject(body) && 'data' in body) return body
  const retryAfterSeconds = parseRetryAfter(headers.get('retry-after'))
  if (isProblem(body, status)) throw new PartnerProblem(body, retryAfterSeconds)
  const message = `What answered at ${origin} with status ${status} is not the service.`
  throw new ServiceUnreachableError(message, { status, retryAfterSeconds })
}

/**
 * Runtimes say why a request failed in a code (Node, Bun) or in words (Deno), on the error or on a cause of it. The
 * first pattern that matches decides.
 */
const failurePatterns: readonly (readonly [pattern: RegExp, failure: string])[] = [
  [/ENOTFOUND|EAI_AGAIN|dns error/i, 'its host name could not be resolved (DNS)'],
  [/ECONNREFUSED|connection refused/i, 'the connection was refused'],
  [/ETIMEDOUT|CONNECT_TIMEOUT|timed out/i, 'the connection timed out'],
  [/ECONNRESET|EPIPE|ERR_SOCKET|terminated|reset by peer/i, 'the connection was closed'],
  [/CERT|SSL|TLS|EPROTO|UNABLE_TO|received corrupt message/i, 'the TLS handshake failed'],
]

/** @returns Why nothing answered, as the end of a sentence; empty where the runtime does not say. */
function describeFailure(error: unknown, timeoutMs: number): string {
  let text = ''
  for (let current = error, depth = 0; isObject(current) && depth < 5; current = current['cause'], depth++) {
    if (current['name'] === 'TimeoutError') return ` within ${timeoutMs} ms`
    text += ` ${current['code']} ${current['message']}`
  }
  // Deno repeats the URL, and a URL may hold any of these words.
  text = text.replace(/https?:\S+/g, '')
  const [pattern, failure] = failurePatterns.find(([pattern]) => pattern.test(text)) ?? []
  if (pattern === undefined) return ''
  const [code] = /\b[A-Z]+_[A-Z_]+\b/.exec(text) ?? []
  return `: ${failure}${code === undefined ? '' : ` (${code})`}`
}

function parseJson(text: string): unknown {
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
function parseRetryAfter(retryAfter: string | null): number | undefined {
  if (retryAfter === null) return undefined
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter)
  const date = retryAfter.endsWith(' GMT') ? Date.parse(retryAfter) : NaN
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - Date.now()) / 1000))
}

/** A request that carries the key, for whatever sends it. */
export interface AuthenticatedRequest {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  /** JSON. */
  readonly body?: string
}

/** What a request is about. */
export interface RequestSpec {
  /** Path and query below the address of the deployment. */
  readonly target: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Sent as JSON, with POST. */
  readonly body?: unknown
}

/**
 * Makes requests to a deployment.
 *
 * @param url Its address. What stands in it besides origin and path is left out: credentials and queries are not sent.
 * @param serviceName The first part of its paths, which its header of keys is named after.
 * @throws {TypeError} for a `url` that is none of `http:` or `https:`.
 */
export function createRequestBuilder(
  url: string | URL,
  serviceName: string,
  key: string,
): (asked: RequestSpec) => AuthenticatedRequest {
  // What `new URL` throws repeats it, and a key may stand in its place. `localhost:8787` is a URL, too: of another scheme.
  const parsed = URL.parse(url)
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    throw new TypeError('url must be an http:// or https:// address, such as https://api.example.')
  }
  const { origin, pathname } = parsed
  const base = origin + pathname.replace(/(?<!\/)\/+$/, '')
  const baseHeaders = {
    [`x-${serviceName}-partner-key`]: key,
    accept: 'application/json, application/problem+json',
  }

  return ({ target, headers, body }) => ({
    url: base + target,
    ...(body === undefined ? { method: 'GET', headers: { ...baseHeaders, ...headers } } : {
      method: 'POST',
      headers: { ...baseHeaders, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    }),
  })
}
