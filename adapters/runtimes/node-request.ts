import type { IncomingMessage, ServerResponse } from 'node:http'
import process from 'node:process'
import { BODY_ALREADY_READ } from '../../core/http/body.ts'
import { isHost } from '../../core/http/fetch.ts'
import type { HttpRequest } from '../../core/http/message.ts'
import { Problem, type ProblemCode } from '../../core/http/problem.ts'
import type { MaybePromise } from '../../core/lib/promise.ts'

const emptyBytes = new Uint8Array()

/** A request of `node:http`. A class for its prototype: a literal would create the accessors for each request. */
export class NodeHttpRequest implements HttpRequest {
  readonly method: string
  readonly target: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Whether the request announces a body, which may still be empty (RFC 9112 §6.3). */
  readonly hasBody: boolean
  /** Whether the client waits for 100 (Continue) before it sends the body (RFC 9110 §10.1.1). */
  awaitsContinue: boolean
  /** Why the rest of the body cannot arrive. */
  failure: ProblemCode | undefined
  #rejectBody: ((problem: Problem) => void) | undefined

  constructor(request: IncomingMessage, response: ServerResponse, target: string, expectsContinue: boolean) {
    const { headers } = request
    this.method = request.method as string
    this.target = target
    this.request = request
    this.response = response
    this.hasBody = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined ||
      // RFC 9113 §8.1: HTTP/2 does not announce bodies.
      request.httpVersionMajor === 2
    this.awaitsContinue = expectsContinue
  }

  get address(): string | undefined {
    // Serverless adapters have no socket.
    return this.request.socket?.remoteAddress
  }

  get isAborted(): boolean {
    return this.response.destroyed
  }

  onAbort(listener: () => void): void {
    const { response } = this
    // A response is destroyed once it has been sent, too.
    const report = () => response.writableFinished || listener()
    if (response.destroyed) report()
    else response.once('close', report)
  }

  /** Whether the body has not arrived completely. */
  get isReceiving(): boolean {
    return this.hasBody && !this.request.complete
  }

  header(name: string): string | undefined {
    // Only Set-Cookie is ever a list, and no request has one.
    return this.request.headers[name] as string | undefined
  }

  isRepeated(name: string): boolean {
    return this.headerValues(name).length > 1
  }

  protected headerValues(name: string): readonly string[] {
    const { rawHeaders } = this.request
    return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]!.toLowerCase() === name)
  }

  body(maxBytes: number): MaybePromise<Uint8Array> {
    const { request } = this
    if (this.failure !== undefined) throw new Problem(this.failure)
    if (!this.hasBody) return emptyBytes
    const length = Number(request.headers['content-length'])
    if (length > maxBytes) throw new Problem('body_too_large')
    if (request.destroyed) throw new Problem('malformed_request')
    if (this.awaitsContinue) this.response.writeContinue()
    this.awaitsContinue = false
    // Cheaper than waiting for events and a promise.
    if (request.readableLength === length) return request.read() ?? emptyBytes
    return new Promise<Uint8Array[]>((resolve, reject) => {
      const chunks: Uint8Array[] = []
      let size = 0
      this.#rejectBody = reject
      request.on('data', (chunk: Uint8Array) => {
        size += chunk.length
        if (size <= maxBytes) chunks.push(chunk)
        else reject(new Problem('body_too_large'))
      })
      request.on('end', () => resolve(chunks))
      request.on('close', () => {
        // The client has disconnected.
        if (!request.readableEnded) reject(new Problem('malformed_request'))
      })
    }).then((chunks) => Buffer.concat(chunks))
  }

  /** Makes a pending or later `body()` throw `code`, unless the body has arrived. */
  fail(code: ProblemCode): void {
    if (!this.isReceiving) return
    this.failure ??= code
    this.#rejectBody?.(new Problem(code))
  }
}

/** The client of a request as the host knows it. */
export interface HostClient {
  /** `undefined` if unknown. */
  readonly address: string | undefined
}

/** A request that a server with unknown settings has received, and the host's middleware may have changed. */
export class MountedHttpRequest extends NodeHttpRequest {
  readonly #client: HostClient | undefined

  /** @param client What the host knows of the client; absent if it knows nothing. */
  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    target: string,
    client: HostClient | undefined,
  ) {
    super(request, response, target, false)
    this.#client = client
  }

  override get address(): string | undefined {
    return this.#client === undefined ? super.address : this.#client.address
  }

  get isClientAddress(): boolean {
    return this.#client !== undefined
  }

  override header(name: string): string | undefined {
    // By default Node drops a repeated key header from `headers`, which would hide it from the service.
    const values = this.headerValues(name)
    return values.length === 0 ? undefined : values.join(', ')
  }

  /**
   * A field counts as it arrived while its value in `headers` is the one that Node made of it: the first, or all of
   * them joined. Any other value is from the host, as is the absence of a field.
   */
  protected override headerValues(name: string): readonly string[] {
    const { headers, rawHeaders } = this.request
    const current = headers[name]
    if (current === undefined) return []
    // Serverless adapters may give only `headers`.
    const sent = rawHeaders?.length > 0 ? super.headerValues(name) : []
    const isUntouched = sent.length > 0 && (current === sent[0] || current === sent.join(', '))
    return isUntouched ? sent : [current].flat().map(String)
  }

  override body(maxBytes: number): MaybePromise<Uint8Array> {
    const { readableEncoding, readableEnded } = this.request
    if (this.hasBody && readableEnded) throw new Error(BODY_ALREADY_READ)
    // Text may have lost bytes that are not valid in its encoding.
    if (readableEncoding) {
      throw new Error('The body is decoded: mount the service before calling setEncoding.')
    }
    return super.body(maxBytes)
  }
}

const maxTargetBytes = 8192
const maxHeaderBytes = 32_768

/** Node's parser counts target and headers together: it accepts more, and `findHeadProblem` counts each. */
export const MAX_PARSER_HEADER_BYTES = 4 * maxHeaderBytes
/** Node silently drops headers beyond this number. No more fit: the shortest is `a:` and CRLF. */
export const MAX_PARSER_HEADERS = maxHeaderBytes / 4

/** Finds what is wrong with a request head that Node's parser has accepted. A problem of the target comes first. */
export function findHeadProblem(request: IncomingMessage): ProblemCode | undefined {
  const { headers, httpVersion, rawHeaders } = request
  if ((request.url as string).length > maxTargetBytes) return 'uri_too_long'
  let size = 0
  // Names and values alternate, in Latin-1, so a character is a byte. `: ` and CRLF are two bytes each.
  for (let i = 0; i < rawHeaders.length; i++) size += (rawHeaders[i] as string).length + 2
  if (size > maxHeaderBytes) return 'headers_too_large'
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return 'malformed_request'
  // RFC 9112 §3.2: exactly one valid Host. Node joins repeated ones with a comma, which is invalid.
  const { host } = headers
  if (host === undefined ? httpVersion === '1.1' : !isHost(host)) return 'malformed_request'
  // RFC 9112 §6.1: chunked is the only coding supported, and HTTP/1.0 has none.
  const coding = headers['transfer-encoding']
  if (coding === undefined) return
  if (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked') return 'malformed_request'
}

/**
 * Converts a target to origin form. Proxies may send the absolute form (RFC 9112 §3.2.2).
 * @returns The asterisk form of OPTIONS as it is; `undefined` for another one, and for the authority form.
 */
export function toOriginForm(url: string, method: string | undefined): string | undefined {
  if (url.charCodeAt(0) === 0x2f || url === '*' && method === 'OPTIONS') return url
  const absolute = /^https?:\/\/[^/?#]+(.*)$/i.exec(url)?.[1]
  return absolute?.startsWith('/') === false ? `/${absolute}` : absolute
}

/** An error of Node's parser, its timer or the socket. Node's types lack the packet that it documents. */
export type ConnectionError = Error & { readonly code?: string; readonly rawPacket?: Buffer }

/** @returns `undefined` when the connection is broken, so that no response can be sent. */
export function problemForError({ code }: ConnectionError): ProblemCode | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  // In a head, the target may be the cause: see `classifyOverflow`.
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 'body_too_large'
  return code?.startsWith('HPE_') ? 'malformed_request' : undefined
}

/**
 * Tells which limit a head exceeds when the parser gives up, once the line has ended. One that ends as a request
 * line does is the target's. @param text The packets since then: the parser reports each one.
 */
export function classifyOverflow(text: string): ProblemCode | undefined {
  const [line, next] = text.split('\n', 2) as [string, string?]
  if (next === undefined) return undefined
  if (!/ HTTP\/\d\.\d\r?$/.test(line)) return 'headers_too_large'
  const [, target, version] = line.split(' ')
  // When the target began in an earlier packet, only its end is known.
  return version !== undefined && target!.length <= maxTargetBytes ? 'headers_too_large' : 'uri_too_long'
}

/** An import of `node:http` would read its member WebSocket, and so load the whole fetch implementation. */
export function loadHttp(): typeof import('node:http') {
  return process.getBuiltinModule('node:http')
}
