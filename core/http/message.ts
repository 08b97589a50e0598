import type { MaybePromise } from '../lib/promise.ts'

/** What of a request its answer depends on. */
export interface RequestMeta {
  readonly requestId: string
  readonly method: string
  readonly ifNoneMatch?: string | undefined
}

/** A reply as content, before it is known how it is asked for. */
export interface CachedBody {
  readonly body: BodyContent
  readonly etag: string
  /** Header fields that every use of it has, names and values in turn, those of the body before `ETag`. */
  readonly headers: readonly string[]
}

/** What a {@linkcode DocumentRoute} answers with. */
export interface StaticDocument {
  readonly text: string
  /** Header fields that belong to it, names and values in turn. */
  readonly headers?: readonly string[]
}

/** What a handler answers: the value of `data`, and of `page` for a list that pages. */
export interface HandlerResult {
  readonly data: unknown
  readonly page?: Page
  /** Header fields of this answer, names and values in turn. */
  readonly headers?: readonly string[]
}

/** The place of a page in its list. */
export interface Page {
  /** How many rows a page has at most. */
  readonly limit: number
  /** Whether there is a page after this one. */
  readonly has_more: boolean
  /** What to send as `cursor` for the next page. */
  readonly next_cursor: string | null
}

/**
 * A request as plain values. Making one costs a runtime nothing that it has not already paid, which is why
 * the service is built on it and not on `Request`.
 */
export interface HttpRequest {
  /** As sent: methods are case-sensitive (RFC 9110 §9.1). */
  readonly method: string
  /** Path and query as sent, percent-encoding untouched, in origin form (RFC 9112 §3.2.1). */
  readonly target: string
  /**
   * The value of a header field by its lower-case name, or `undefined`. Values of a repeated field are
   * joined with `, ` (RFC 9110 §5.3).
   */
  header(name: string): string | undefined
  /** Whether a header field, by its lower-case name, was sent more than once. Absent where the runtime does not tell. */
  isRepeated?(name: string): boolean
  /**
   * The whole content, counted as it arrives. Called at most once.
   * @throws {Problem} `body_too_large` beyond `maxBytes`.
   */
  body(maxBytes: number): MaybePromise<Uint8Array>
  /** The address of the peer that opened the connection, where the runtime tells. */
  readonly address: string | undefined
}

/** An answer as plain values. */
export interface HttpResponse {
  /** 200–599. */
  readonly status: number
  /** Names and values in turn, ready for one write. `Content-Length` is among them where it applies. */
  readonly headers: readonly string[]
  /**
   * The array that `headers` begins with, where many answers of one representation do: what is made of it once serves
   * all of them. Names that follow it stand once.
   */
  readonly stem?: readonly string[] | undefined
  /** Text is to be sent in UTF-8. Absent for HEAD, 204 and 304. */
  readonly body: BodyContent | undefined
}

/** The content of an answer: text, to be sent in UTF-8, or the bytes of it where they are sent more than once. */
export type BodyContent = string | Uint8Array

const encoder = new TextEncoder()
/** Longer than nearly all answers. */
const measureBuffer = new Uint8Array(65_536)

/** The bytes of a text in UTF-8. */
export function encode(text: string): Uint8Array {
  return encoder.encode(text)
}

/** How many bytes a text has in UTF-8. Encodes into the same place each time, which costs no memory. */
export function byteLength(text: string): number {
  const { read, written } = encoder.encodeInto(text, measureBuffer)
  return read === text.length ? written : encoder.encode(text).length
}
