import { isObject, parseJson } from '../../core/lib/json.ts'
import { delay, ignoreFailure, type MaybePromise } from '../../core/lib/promise.ts'
import type { Problem } from '../../core/wire.ts'
import { PartnerApiError, PartnerProblem, ServiceUnreachableError } from './errors.ts'
import { describeResponse, type ResponseInfo } from './response.ts'

/** An attempt of a request, 0 for the first one. Hooks see neither headers nor body, which have secrets. */
export type Attempt = { readonly method: 'GET' | 'POST'; readonly url: string; readonly attempt: number }

/** Functions that see every attempt. They are not awaited, and what they throw is ignored. */
export interface Hooks {
  /** Called before an attempt. */
  readonly onRequest?: ((attempt: Attempt) => unknown) | undefined
  /** Called after an attempt, with the milliseconds that it took, its response, and why it failed. */
  readonly onResponse?:
    | ((attempt: Attempt, durationMs: number, response?: ResponseInfo, error?: unknown) => unknown)
    | undefined
}

export interface TransportOptions extends Hooks {
  /** Milliseconds for one attempt, its response included. */
  readonly timeoutMs: number
  readonly retries: number
  /** Whole seconds: a longer `Retry-After` ends the retries. */
  readonly maxRetryAfterSeconds: number
  readonly fetch: (request: Request) => MaybePromise<Response>
}

export interface RequestSpec {
  /** Path and query below the address of the deployment. */
  readonly target: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Sent as JSON, with POST. */
  readonly body?: unknown
}

/** A request that carries the key. */
export interface AuthenticatedRequest {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  /** JSON, of a POST. */
  readonly body?: string
}

/**
 * Makes requests to a deployment.
 *
 * @param url Its address. Only origin and path are used.
 * @param serviceName The first segment of its paths, and part of the name of its key header.
 * @throws {TypeError} unless `url` is an `http:` or `https:` URL.
 */
export function createRequestBuilder(
  url: string | URL,
  serviceName: string,
  key: string,
): (spec: RequestSpec) => AuthenticatedRequest {
  // The message of `new URL` quotes its argument, which may be a misplaced key. `localhost:8787` parses as a scheme.
  const parsed = URL.parse(url)
  if (!parsed || !/^https?:$/.test(parsed.protocol)) {
    throw new TypeError('url must be an http:// or https:// address, such as https://api.example.')
  }
  const { origin, pathname } = parsed
  const base = origin + pathname.replace(/(?<!\/)\/+$/, '')
  const commonHeaders = {
    [`x-${serviceName}-partner-key`]: key,
    accept: 'application/json, application/problem+json',
  }

  return ({ target, headers, body }) => {
    const request = { url: base + target, headers: { ...headers, ...commonHeaders } }
    if (body === undefined) return { ...request, method: 'GET' }
    return {
      ...request,
      method: 'POST',
      headers: { ...request.headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }
  }
}

/** A longer response is not the service's: 16 MiB. */
export const MAX_RESPONSE_BYTES = 16_777_216

/** Limits the mean delay; with jitter, no delay exceeds 30 seconds. */
const maxMeanDelayMs = 20_000

/** Conditions that may pass: no response, a quota, a gateway, a store, a first attempt that is still running. */
const retryableStatus: readonly (number | undefined)[] = [undefined, 408, 409, 429, 500, 502, 503, 504]

/**
 * Sends an idempotent request (a read, or a write with an idempotency key) and retries it: as soon as `Retry-After`
 * allows, or after a delay that doubles up to half a minute.
 *
 * @returns The body of a success, as JSON, and its response.
 * @throws {PartnerProblem} when the service refuses the request.
 * @throws {ServiceUnreachableError} when nothing, or something else, responds.
 * @throws The reason of `signal`, when that is aborted.
 */
export async function sendWithRetries(
  request: AuthenticatedRequest,
  options: TransportOptions,
  signal: AbortSignal | undefined,
) {
  // A custom `fetch` may not check the signal before it sends.
  signal?.throwIfAborted()
  for (let attempt = 0;; attempt++) {
    const shown = { method: request.method, url: request.url, attempt }
    ignoreFailure(() => options.onRequest?.(shown))
    const startedAt = performance.now()
    const report = (response?: ResponseInfo, error?: unknown) =>
      ignoreFailure(() => options.onResponse?.(shown, performance.now() - startedAt, response, error))
    try {
      const received = await sendOnce(request, options, signal)
      report(received.response)
      return received
    } catch (error) {
      report((error as Partial<PartnerApiError>)?.response, error)
      signal?.throwIfAborted()
      const delayMs = retryDelayMs(error, attempt, options)
      if (delayMs === undefined) throw error
      await delay(delayMs, signal)
    }
  }
}

/** @returns Milliseconds until the next attempt, or `undefined` to give up. */
function retryDelayMs(error: unknown, attempt: number, options: TransportOptions): number | undefined {
  const { retries, maxRetryAfterSeconds } = options
  if (attempt >= retries || !(error instanceof PartnerApiError)) return undefined
  if (!retryableStatus.includes(error.status)) return undefined
  // The successor is another client's, and another attempt would revoke it, unless an earlier one had no response.
  if (attempt === 0 && (error as Partial<PartnerProblem>).code === 'rotation_conflict') return undefined
  const retryAfterSeconds = error.retryAfterSeconds
  if (retryAfterSeconds !== undefined) {
    return retryAfterSeconds > maxRetryAfterSeconds ? undefined : retryAfterSeconds * 1000
  }
  // Jitter keeps clients that failed together from retrying together.
  return Math.min(250 * 2 ** attempt, maxMeanDelayMs) * (0.5 + Math.random())
}

async function sendOnce(
  { url, ...request }: AuthenticatedRequest,
  { timeoutMs, fetch }: TransportOptions,
  signal: AbortSignal | undefined,
) {
  // Messages omit the path and the query, which may be confidential.
  const origin = () => new URL(url).origin
  const timeout = AbortSignal.timeout(timeoutMs)
  const ending = signal === undefined ? timeout : AbortSignal.any([signal, timeout])
  // Constructed outside of the `catch` below: an invalid request is not an unreachable service.
  const webRequest = new Request(url, {
    ...request,
    // A redirect would carry the key to another server.
    redirect: 'manual',
    signal: ending,
  })
  const read = async () => {
    const response = await fetch(webRequest)
    return { received: response, text: await readText(response.body ?? [], MAX_RESPONSE_BYTES, ending) }
  }
  const { received, text } = await untilAborted(read(), ending).catch((cause) => {
    const failure = explainNetworkError(cause)
    const reason = timeout.aborted ? ` within ${timeoutMs} ms` : failure ? `: ${failure.text}` : ''
    throw new ServiceUnreachableError(`${origin()} did not respond${reason}.`, undefined, { cause })
  })
  const response = describeResponse(received)
  if (text === undefined) {
    throw new ServiceUnreachableError(`The response of ${origin()} is longer than 16 MiB.`, response)
  }
  const body = parseJson(text)
  if (received.ok && isObject(body) && 'data' in body) return { body, response }
  if (isProblem(body, response.status)) throw new PartnerProblem(body, response)
  const message = `The response of ${origin()} with status ${response.status} is not the service's.`
  throw new ServiceUnreachableError(message, response)
}

/** Rejects at once when the signal aborts: a custom `fetch` may ignore the signal of its request. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort)
    // Deno runs until the timeout while its signal has a listener.
    promise.finally(() => signal.removeEventListener('abort', abort)).then(resolve, reject)
  })
}

/** @param options Of the decoder. @returns `undefined` for more than `maxBytes`. */
export async function readText(
  body: AsyncIterable<Uint8Array> | Iterable<never>,
  maxBytes: number,
  signal?: AbortSignal,
  options?: TextDecoderOptions,
): Promise<string | undefined> {
  const decoder = new TextDecoder(undefined, options)
  let text = ''
  let size = 0
  for await (const chunk of body) {
    signal?.throwIfAborted()
    size += chunk.length
    if (size > maxBytes) return undefined
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

/** Kinds of network errors, by their codes (Node, Bun) and messages (Deno, ports). The first match decides. */
const networkErrors = [
  ['blocked', /\bbad port\b|requests to port \d+ are blocked/i, 'fetch refuses to connect to this port'],
  ['dns', /ENOTFOUND|EAI_AGAIN|dns error/i, 'its host name could not be resolved (DNS)'],
  ['refused', /ECONNREFUSED|connection refused/i, 'the connection was refused'],
  ['timeout', /ETIMEDOUT|CONNECT_TIMEOUT|timed out/i, 'the connection timed out'],
  ['closed', /ECONNRESET|EPIPE|ERR_SOCKET|terminated|reset by peer/i, 'the connection was closed'],
  ['tls', /CERT|SSL|TLS|EPROTO|UNABLE_TO|received corrupt message/i, 'the TLS handshake failed'],
] as const

export type NetworkErrorKind = typeof networkErrors[number][0]

/** @returns What a network error means, and its code; `undefined` for an unknown error. */
export function explainNetworkError(error: unknown) {
  let text = ''
  for (let link = error, depth = 0; isObject(link) && depth < 5; link = link['cause'], depth++) {
    text += ` ${link['code']} ${link['message']}`
  }
  // Deno quotes the URL, which may contain any of the patterns.
  text = text.replace(/https?:\S+/g, '')
  const found = networkErrors.find(([, pattern]) => pattern.test(text))
  if (found === undefined) return undefined
  const [kind, , meaning] = found
  const [code] = /\b[A-Z]+_[A-Z_]+\b/.exec(text) ?? []
  return { kind, code, text: code === undefined ? meaning : `${meaning} (${code})` }
}

/** Other servers send problems, too; the service's repeats the status and has a request id. */
function isProblem(value: unknown, status: number): value is Problem {
  return isObject(value) && value['status'] === status &&
    ['code', 'detail', 'request_id'].every((name) => typeof value[name] === 'string')
}
