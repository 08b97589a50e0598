import type { MaybePromise } from '../ports.ts'
import type { Content } from './content.ts'

/**
 * A request as plain values. Making one costs a runtime nothing that it has not already paid, which is why
 * the service is built on it and not on `Request`.
 */
export interface Exchange {
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
export interface Answer {
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
  readonly body: Content | undefined
}
