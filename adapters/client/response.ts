/** What is known of a response beside its body. */
import type { WebResponse } from '../../core/lib/web-globals.ts'
import type { Verification } from '../../core/wire.ts'

/** `Headers` of the Fetch standard; `unknown` under a type library without it. */
export type WebHeaders = WebResponse extends { readonly headers: infer T } ? T : unknown

/** A rate limit that the request counted against, as in the response of `verifyKey`. */
export type RateLimit = Verification['limits'][number]

/** The status and headers of a response. */
export interface ResponseInfo {
  /** HTTP status. */
  readonly status: number
  /** The header fields. */
  readonly headers: WebHeaders
  /** `X-Request-Id`: include it in support requests. */
  readonly requestId: string | undefined
  /** The limits that `RateLimit-Policy` and `RateLimit` name. */
  readonly rateLimits: readonly RateLimit[]
  /** Whole seconds from `Retry-After`. */
  readonly retryAfterSeconds: number | undefined
  /** Whether the service repeated its response to an earlier request with the same idempotency key. */
  readonly replayed: boolean
}

/** Data with its response, which is not enumerable: it is in neither JSON nor copies of the data. */
export type WithResponse<Data> = Data & { readonly response: ResponseInfo }

/** Adds the response to the given object itself, and returns that. */
export function attachResponse<Data extends object>(data: Data, response: ResponseInfo): WithResponse<Data> {
  return Object.defineProperty(data, 'response', { value: response }) as WithResponse<Data>
}

export function describeResponse({ status, headers }: Response): ResponseInfo {
  return {
    status,
    headers,
    requestId: headers.get('x-request-id') ?? undefined,
    // draft-ietf-httpapi-ratelimit-headers-11 §3 and §4, as the service writes them.
    get rateLimits() {
      const [policies = [], limits = []] = ['ratelimit-policy', 'ratelimit'].map((name) => [
        ...(headers.get(name) ?? '').matchAll(/"(\w+)";\w=(\d+);\w=(\d+)/g),
      ])
      return policies.map(([, policy, ...numbers]) => {
        const [, , ...more] = limits.find(([, name]) => name === policy) ?? []
        const values = [...numbers, ...more].map(Number) as [number, number, number, number]
        const [quota, window_seconds, remaining, resets_in_seconds] = values
        return { policy: policy as RateLimit['policy'], quota, window_seconds, remaining, resets_in_seconds }
      })
    },
    retryAfterSeconds: parseRetryAfter(headers.get('retry-after')),
    replayed: headers.has('idempotent-replayed'),
  }
}

/** RFC 9110 §10.2.3: seconds, as the service sends it, or a date, as a gateway may. */
export function parseRetryAfter(retryAfter: string | null): number | undefined {
  if (retryAfter === null) return undefined
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter)
  const date = retryAfter.endsWith(' GMT') ? Date.parse(retryAfter) : NaN
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - Date.now()) / 1000))
}
