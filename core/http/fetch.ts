import { andThen, type MaybePromise } from '../lib/promise.ts'
import type { WebRequest, WebResponse } from '../lib/web-globals.ts'
import { BODY_ALREADY_READ } from './body.ts'
import type { HttpRequest, HttpResponse } from './message.ts'
import { Problem, type ProblemCode } from './problem.ts'

/** What a runtime reports about a request's connection. Values of another shape are ignored. */
export interface PeerInfo {
  /** The peer of the connection; `hostname` is its IP address, as `Deno.serve` gives it. */
  readonly remoteAddr?: { readonly hostname?: string | undefined } | undefined
}

/**
 * Wraps the service as a fetch handler.
 *
 * @param createFallback Makes the response in place of one that cannot be sent.
 */
export function createFetch(
  handle: (request: HttpRequest) => MaybePromise<HttpResponse>,
  createFallback: (error: unknown) => HttpResponse,
): (request: WebRequest, info?: PeerInfo) => Promise<WebResponse> {
  const respond = createResponseConverter(createFallback)
  const answer = (request: HttpRequest): MaybePromise<WebResponse> => andThen(handle(request), respond)
  return (request, info) => {
    try {
      const fetched = new FetchRequest(request, info)
      return fetched.hasSmallBody ? fetched.arrive(answer) : Promise.resolve(answer(fetched))
    } catch (error) {
      return Promise.resolve(respond(createFallback(toRequestError(request, error))))
    }
  }
}

/** What is wrong with what the host passed: most often it is no `Request`. @param error What reading it threw. */
export function toRequestError(request: WebRequest | undefined, error: unknown): unknown {
  if (typeof request?.headers?.get === 'function') return error
  return new TypeError('The request must be a Request of the Fetch standard, as new Request(url) makes it.')
}

/** Bodies up to this length are read before a request is handled, in bytes. */
const maxSmallBytes = 16_384

/** A `Request` as core reads it. A class, so that a request costs one object and no closures. */
export class FetchRequest implements HttpRequest {
  readonly method: string
  readonly target: string
  protected readonly request: WebRequest
  readonly #headers: Headers
  /** The declared length of the body. */
  readonly #length: string | null
  readonly #info: PeerInfo | undefined
  /** Called once the body of a declared length has arrived, or cannot arrive any more. */
  #whenRead: ((read: Uint8Array | Error) => void) | undefined
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  /** The small body that has arrived, or why none can. */
  #arrived: Uint8Array | Error | undefined

  constructor(request: WebRequest, info?: PeerInfo) {
    const { headers } = request
    this.method = request.method
    this.request = request
    this.#headers = headers
    this.#length = headers.get('content-length')
    this.target = isFramed(this.#length, headers) ? targetOf(request.url) : invalidTarget
    this.#info = info
  }

  get address(): string | undefined {
    return this.#info?.remoteAddr?.hostname
  }

  header(name: string): string | undefined {
    return this.#headers.get(name) ?? undefined
  }

  /** Whether a body of a known, small length is to be read. */
  get hasSmallBody(): boolean {
    // What is absent counts as 0.
    const length = this.method === 'POST' ? Number(this.#length) : 0
    return length > 0 && length <= maxSmallBytes && !this.request.bodyUsed
  }

  /**
   * Handles the request once its small body has arrived, or cannot arrive any more: then nothing is awaited between the
   * checks, and none has to be repeated.
   *
   * @param handle Never throws.
   * @throws what the method that reads the body throws at once, if the argument is not a request.
   */
  arrive<T>(handle: (request: this) => MaybePromise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<T>()
    this.#readDeclared(maxSmallBytes, (read) => {
      this.#arrived = read
      resolve(handle(this))
    })
    return promise
  }

  onAbort(listener: () => void): void {
    const { signal } = this.request
    if (signal.aborted) listener()
    else signal.addEventListener('abort', listener, { once: true })
  }

  body(maxBytes: number): MaybePromise<Uint8Array> {
    if (this.#arrived instanceof Error) throw this.#arrived
    if (this.#arrived !== undefined) return this.#arrived
    if (this.request.bodyUsed) throw new Error(BODY_ALREADY_READ)
    if (Number(this.#length) > maxBytes) throw new Problem('body_too_large')
    if (this.#length === null) return this.#read(maxBytes)
    return new Promise((resolve, reject) => {
      this.#readDeclared(maxBytes, (read) => read instanceof Error ? reject(read) : resolve(read))
    })
  }

  /** Stops reading the body: reads throw `code`, and the runtime may discard what still arrives. */
  fail(code: ProblemCode): void {
    const problem = new Problem(code)
    this.#arrived ??= problem
    this.#reader?.cancel().catch(() => undefined)
    this.#endReading(problem)
  }

  #endReading(read: Uint8Array | Error): void {
    const whenRead = this.#whenRead
    this.#whenRead = undefined
    whenRead?.(read)
  }

  /** A stream is slower, and each promise takes a twentieth of the time of a small request. */
  #readDeclared(maxBytes: number, whenRead: (read: Uint8Array | Error) => void): void {
    this.#whenRead = whenRead
    this.request.arrayBuffer().then((buffer) => {
      // Only a server checks the declared length, not the constructor of `Request`.
      const isTooLarge = buffer.byteLength > maxBytes
      this.#endReading(isTooLarge ? new Problem('body_too_large') : new Uint8Array(buffer))
    }, (error) => {
      // Nothing was read: the host has a reader.
      const isLocked = error instanceof TypeError && !this.request.bodyUsed
      this.#endReading(isLocked ? new Error(BODY_ALREADY_READ) : endedEarly())
    })
  }

  async #read(maxBytes: number): Promise<Uint8Array> {
    if (this.request.body?.locked) throw new Error(BODY_ALREADY_READ)
    const reader = this.#reader = this.request.body?.getReader()
    const chunks: Uint8Array[] = []
    let length = 0
    try {
      for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
        length += read.value.length
        if (length > maxBytes) this.fail('body_too_large')
        chunks.push(read.value)
      }
    } catch {
      if (this.#arrived === undefined) throw endedEarly()
    }
    if (this.#arrived instanceof Error) throw this.#arrived
    const bytes = new Uint8Array(length)
    let offset = 0
    for (const chunk of chunks) {
      bytes.set(chunk, offset)
      offset += chunk.length
    }
    return bytes
  }
}

const endedEarly = (): Problem => new Problem('malformed_request', { detail: 'The body ended early.' })

/** Rejected for its malformed percent-encoding. */
const invalidTarget = '%'

/**
 * Path and query from the URL of a request, without its fragment. Bun prepends nothing if Host is absent or invalid.
 */
function targetOf(url: string): string {
  let start = url.startsWith('http') ? url.indexOf('/', url.indexOf(':') + 3) : 0
  const query = url.indexOf('?')
  // In absolute form the path may be empty, followed by a query that contains slashes.
  if (start < 0 || query >= 0 && query < start) start = query < 0 ? url.length : query
  const fragment = url.indexOf('#')
  const target = url.slice(start, fragment < 0 ? undefined : fragment)
  return target.startsWith('/') ? target : `/${target}`
}

/**
 * Whether the end of a request and its path are unambiguous. Parsers accept joined equal lengths and codings
 * besides chunked, which another server may frame as a different request (RFC 9112 §6.1, §6.3), and Deno prepends
 * the Host header to the path unchecked.
 */
function isFramed(length: string | null, headers: Headers): boolean {
  const coding = headers.get('transfer-encoding')
  return (length === null || /^\d+$/.test(length)) && (coding === null || /^chunked$/i.test(coding)) &&
    isHost(headers.get('host') ?? '')
}

/** Whether a Host value contains only characters of names, addresses and ports (RFC 9110 §7.2, RFC 3986 §3.2.2). */
export function isHost(value: string): boolean {
  return !/[^!$-.0-;=A-[\]_a-z~]/.test(value)
}

/**
 * Converts responses to `Response`.
 *
 * @param createFallback Makes the response in place of one that cannot be sent.
 */
export function createResponseConverter(
  createFallback: (error: unknown) => HttpResponse,
): (response: HttpResponse) => WebResponse {
  return (response) => {
    try {
      return response.own ?? toResponse(response)
    } catch (error) {
      // A header has an invalid value.
      return toResponse(createFallback(error))
    }
  }
}

function toResponse(response: HttpResponse): Response {
  const { status, body } = response
  // As a record: `Response` would check each field of a `Headers` again.
  const headers: Record<string, string> = {}
  const fields = sentHeaders(response)
  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index]!
    const value = fields[index + 1]!
    const before = headers[name]
    headers[name] = before === undefined ? value : `${before}, ${value}`
  }
  // Workers would compress a compressed body again.
  const init = { status, headers, encodeBody: 'manual' }
  return new Response(body as string | Uint8Array<ArrayBuffer> | undefined ?? null, init)
}

/** The headers of a response. The rest of a late request must not be read as the next one. */
export function sentHeaders({ status, headers }: HttpResponse): readonly string[] {
  return status === 408 ? [...headers, 'Connection', 'close'] : headers
}
