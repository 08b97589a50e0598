import type { IncomingMessage, ServerResponse } from 'node:http'
import process from 'node:process'
import { BODY_ALREADY_READ } from '../../core/http/body.ts'
import { isHost } from '../../core/http/fetch.ts'
import type { HttpRequest } from '../../core/http/message.ts'
import { Problem, type ProblemCode } from '../../core/http/problem.ts'
import type { MaybePromise } from '../../core/lib/promise.ts'

const emptyBytes = new Uint8Array()

/**
 * A request of `node:http` as core reads it. A class, unlike everything around it: its accessors stand on the
 * prototype once, where a literal would make them for each request (measured: 4 µs of 18).
 */
export class NodeHttpRequest implements HttpRequest {
  readonly method: string
  readonly target: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Whether content was announced; there may still be none of it (RFC 9112 §6.3). */
  readonly hasBody: boolean
  #awaitsContinue: boolean
  #failure: ProblemCode | undefined
  #rejectBody: ((problem: Problem) => void) | undefined

  constructor(request: IncomingMessage, response: ServerResponse, target: string, expectsContinue: boolean) {
    const { headers } = request
    this.method = request.method as string
    this.target = target
    this.request = request
    this.response = response
    this.hasBody = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined ||
      // RFC 9113 §8.1: content needs no announcement there.
      request.httpVersionMajor === 2
    this.#awaitsContinue = expectsContinue
  }

  get address(): string | undefined {
    return this.request.socket.remoteAddress
  }

  /** Whether there is still content to come. */
  get isReceiving(): boolean {
    return this.hasBody && !this.request.complete
  }

  /** Whether the client holds its content back until told to go on (RFC 9110 §10.1.1). */
  get awaitsContinue(): boolean {
    return this.#awaitsContinue
  }

  /** Whether nothing more can come, because framing broke or time ran out. */
  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  header(name: string): string | undefined {
    // Only Set-Cookie is ever a list, and no request has one.
    return this.request.headers[name] as string | undefined
  }

  isRepeated(name: string): boolean {
    return this.headerValues(name).length > 1
  }

  /** Every value of a header field, in order. */
  protected headerValues(name: string): readonly string[] {
    const { rawHeaders } = this.request
    return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]!.toLowerCase() === name)
  }

  body(maxBytes: number): MaybePromise<Uint8Array> {
    const { request } = this
    if (this.#failure !== undefined) throw new Problem(this.#failure)
    if (!this.hasBody) return emptyBytes
    if (Number(request.headers['content-length']) > maxBytes) throw new Problem('body_too_large')
    if (request.destroyed) throw new Problem('malformed_request')
    if (this.#awaitsContinue) this.response.writeContinue()
    this.#awaitsContinue = false
    return new Promise((resolve, reject) => {
      const chunks: Uint8Array[] = []
      let size = 0
      this.#rejectBody = reject
      request.on('data', (chunk: Uint8Array) => {
        size += chunk.length
        if (size <= maxBytes) chunks.push(chunk)
        else reject(new Problem('body_too_large'))
      })
      request.on('end', () => resolve(Buffer.concat(chunks)))
      // Before the end this means that the client has gone: the answer goes nowhere.
      request.on('close', () => reject(new Problem('malformed_request')))
    })
  }

  /** Ends a body that will not arrive: whoever waits for it, or asks later, gets `code`. */
  fail(code: ProblemCode): void {
    if (!this.isReceiving) return
    this.#failure ??= code
    this.#rejectBody?.(new Problem(code))
  }
}

/** A request that another server has received, with settings of its own. */
export class MountedHttpRequest extends NodeHttpRequest {
  override header(name: string): string | undefined {
    // Unless told to join them, Node drops a second key from `headers`, and the service could not refuse it.
    const values = this.headerValues(name)
    return values.length === 0 ? undefined : values.join(', ')
  }

  override body(maxBytes: number): MaybePromise<Uint8Array> {
    if (this.hasBody && this.request.readableEnded) {
      throw new Error(BODY_ALREADY_READ)
    }
    return super.body(maxBytes)
  }
}

const maxTargetBytes = 8192
const maxHeaderBytes = 32_768

/**
 * What Node's parser is set to. It counts target and headers together and does not tell which was too large,
 * so it lets through four times what is allowed, and `objectionTo` does the counting. That is more than a packet has.
 */
export const maxParserHeaderBytes: number = 4 * maxHeaderBytes
/** Beyond this number Node drops headers in silence. No more can fit: the shortest is `a:` and its CRLF. */
export const maxParserHeaders: number = maxHeaderBytes / 4

/**
 * What is wrong with the head of a request that Node's parser lets through.
 *
 * @returns A code, the target's first, or `undefined` for a good head.
 */
export function findHeadProblem(request: IncomingMessage): ProblemCode | undefined {
  const { headers, httpVersion, rawHeaders } = request
  if ((request.url as string).length > maxTargetBytes) return 'uri_too_long'
  let size = 0
  // Node hands over names and values as Latin-1, a character a byte, in turn: `: ` and CRLF make it a line.
  for (let i = 0; i < rawHeaders.length; i++) size += (rawHeaders[i] as string).length + 2
  if (size > maxHeaderBytes) return 'headers_too_large'
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return 'malformed_request'
  // RFC 9112 §3.2: exactly one Host, and a valid one. Repeated ones are joined by a comma and a space.
  const { host } = headers
  if (host === undefined ? httpVersion === '1.1' : !isHost(host)) return 'malformed_request'
  // RFC 9112 §6.1: no other coding is understood, and none is defined for HTTP/1.0.
  const coding = headers['transfer-encoding']
  if (coding === undefined) return
  if (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked') return 'malformed_request'
}

/**
 * The target of a request in origin form. Proxies may send the absolute form (RFC 9112 §3.2.2).
 *
 * @returns `undefined` for the asterisk and authority forms, which name nothing here.
 */
export function toOriginForm(url: string): string | undefined {
  if (url.charCodeAt(0) === 0x2f) return url
  const absolute = /^https?:\/\/[^/?#]+(.*)$/i.exec(url)?.[1]
  return absolute?.startsWith('/') === false ? `/${absolute}` : absolute
}

/** What Node's parser, its timer or the socket complained about. */
export type ConnectionError = Error & { readonly code?: string; readonly rawPacket?: Buffer }

/**
 * The code for an error that Node reports for a connection.
 *
 * @returns `undefined` when the connection itself is broken and there is nobody to tell.
 */
export function problemForError({ code }: ConnectionError): ProblemCode | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  // Of a head, or of the trailers behind a body. In a head it may be the target: see `overflowIn`.
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 'body_too_large'
  return code?.startsWith('HPE_') ? 'malformed_request' : undefined
}

/**
 * Which limit a head broke when the parser gave up on it. It shows one packet at a time, and goes on to: a target is
 * what ends as a request line does.
 *
 * @param text The packets since then.
 * @returns `undefined` until the line has ended.
 */
export function classifyOverflow(text: string): ProblemCode | undefined {
  const end = text.indexOf('\n')
  if (end < 0) return undefined
  const line = text.slice(0, end)
  if (!/ HTTP\/\d\.\d\r?$/.test(line)) return 'headers_too_large'
  const [, target, version] = line.split(' ')
  // Of a target that began in an earlier packet only the end is there.
  return version !== undefined && target!.length <= maxTargetBytes ? 'headers_too_large' : 'uri_too_long'
}

/**
 * Node's `node:http`. An import would read each of its members, WebSocket among them, and with that load all that fetch
 * is made of: 25 of the 120 ms in which a server starts.
 */
export function loadHttp(): typeof import('node:http') {
  return process.getBuiltinModule('node:http')
}
