import type { WebResponse } from '../lib/web-globals.ts'
import type { MaybePromise } from '../lib/promise.ts'
import type { Problem } from './problem.ts'

/** What a response depends on besides its content. */
export interface RequestMeta {
  readonly requestId: string
  /** Absent for a request that could not be parsed. */
  readonly request: Pick<HttpRequest, 'method' | 'header'> | undefined
  /** Absent if no limit was applied. */
  readonly rateLimit?: RateLimitFields | undefined
}

/**
 * The values of `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11 §3 and §4), with every
 * policy that was applied.
 */
export interface RateLimitFields {
  readonly policy: string
  readonly limit: string
}

/** The body and headers of a successful GET, from which 200, 304 and HEAD responses are made. */
export interface CachedBody {
  readonly body: BodyContent
  readonly etag: string
  /** Names and values in turn, those of the content before `ETag`. */
  readonly headers: readonly string[]
}

/** A public document. */
export interface StaticDocument {
  readonly text: string
  /** Names and values in turn. */
  readonly headers?: readonly string[]
  /** The request header that selects it, besides `Accept-Encoding`. */
  readonly variesBy?: 'Accept'
}

/** What a handler returns: the value of `data`, and of `page` for paged lists. */
export interface HandlerResult {
  readonly data?: unknown
  readonly page?: Page
  /** A page in place of JSON. */
  readonly html?: string
  /** `Cache-Control` of the response to a POST, default `no-store`. */
  readonly cacheControl?: string
  /** Names and values in turn. */
  readonly headers?: readonly string[]
}

/** Makes the page of a problem, with its headers as names and values in turn. */
export type ProblemPage = (
  problem: Problem,
  requestId: string,
) => { readonly html: string; readonly headers: readonly string[] }

/** The position of a page in its list. */
export interface Page {
  /** Maximum number of rows. */
  readonly limit: number
  /** Whether there is another page. */
  readonly has_more: boolean
  /** The `cursor` of the next page. */
  readonly next_cursor: string | null
}

/** A request as plain values, which are cheaper than a `Request`: a runtime has them already. */
export interface HttpRequest {
  /** The method as sent: methods are case-sensitive (RFC 9110 §9.1). */
  readonly method: string
  /** Path and query as sent, percent-encoding untouched, in origin form (RFC 9112 §3.2.1), or `*` of OPTIONS. */
  readonly target: string
  /**
   * The value of a header field by its lower-case name, or `undefined`. Values of a repeated field are
   * joined with `, ` (RFC 9110 §5.3).
   */
  header(name: string): string | undefined
  /** Whether the client is known to have gone. Absent if the runtime does not report it. */
  readonly isAborted?: boolean
  /** Calls back once when the client has gone before its response. Absent if the runtime does not report it. */
  onAbort?(listener: () => void): void
  /**
   * Whether a header field, by its lower-case name, was sent more than once. Absent if the runtime does not report it.
   */
  isRepeated?(name: string): boolean
  /** The body as the host has parsed it: then `body` is not called. Absent if it has not. */
  readonly parsedBody?: { readonly value: unknown } | undefined
  /** Reads the whole content. Called at most once. @throws {Problem} `body_too_large` beyond `maxBytes`. */
  body(maxBytes: number): MaybePromise<Uint8Array>
  /** The address of the connection's peer, if the runtime reports it. */
  readonly address: string | undefined
  /** Whether `address` is the client's, so that no field of a proxy counts. Absent: it is the peer's. */
  readonly isClientAddress?: boolean
  /** Whether the runtime reports the address, where each reading of it takes long. */
  readonly hasAddress?: true
}

/** A response as plain values. */
export interface HttpResponse {
  /** 200–599. */
  readonly status: number
  /** Names and values in turn, each name once, including `Content-Length` where it applies. */
  readonly headers: readonly string[]
  /** Absent for HEAD, 204 and 304. */
  readonly body: BodyContent | undefined
  /** The response of a protected route of the host's, to send in place of these members. */
  readonly own?: WebResponse
}

/** Text to send in UTF-8, or bytes, which are the same object for each response with the same content. */
export type BodyContent = string | Uint8Array

const encoder = new TextEncoder()
/** The buffer in which texts are measured, larger than nearly all responses. */
const measureBuffer = new Uint8Array(65_536)

export function encode(text: string): Uint8Array {
  return encoder.encode(text)
}

/** The length of a text in UTF-8. Encoding into a buffer that is reused allocates nothing. */
export function byteLength(text: string): number {
  const { read, written } = encoder.encodeInto(text, measureBuffer)
  return read === text.length ? written : encoder.encode(text).length
}
