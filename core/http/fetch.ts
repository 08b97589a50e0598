import type { MaybePromise } from '../lib/promise.ts'
import type { WebRequest, WebResponse } from '../lib/web.ts'
import { BODY_ALREADY_READ } from './body.ts'
import type { HttpRequest, HttpResponse } from './message.ts'
import { Problem, type ProblemCode } from './problem.ts'

/** What a runtime tells of a request beside it. Whatever has another shape is passed over. */
export interface PeerInfo {
  /** The peer of the connection; `hostname` is its IP address, as `Deno.serve` gives it. */
  readonly remoteAddr?: { readonly hostname?: string | undefined } | undefined
}

/**
 * Wraps the service as a fetch handler.
 *
 * @param createFallback Makes the answer in place of one that can't be sent.
 */
export function createFetch(
  handle: (exchange: HttpRequest) => MaybePromise<HttpResponse>,
  createFallback: () => HttpResponse,
): (request: WebRequest, info?: PeerInfo) => Promise<WebResponse> {
  const respond = createResponseConverter(createFallback)
  return async (request, info) => respond(await handle(new FetchRequestWithPeer(request, info)))
}

/** A request of the Fetch standard as core reads it. A class for its prototype: a request then costs one object. */
export class FetchRequest implements HttpRequest {
  readonly method: string
  readonly target: string
  protected readonly request: WebRequest
  readonly #headers: Headers
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  #failure: ProblemCode | undefined

  constructor(request: WebRequest) {
    this.method = request.method
    this.target = targetOf(request)
    this.request = request
    this.#headers = request.headers
  }

  get address(): string | undefined {
    return undefined
  }

  header(name: string): string | undefined {
    return this.#headers.get(name) ?? undefined
  }

  body(maxBytes: number): MaybePromise<Uint8Array> {
    if (this.request.bodyUsed) throw new Error(BODY_ALREADY_READ)
    if (Number(this.header('content-length')) > maxBytes) throw new Problem('body_too_large')
    if (this.#failure !== undefined) throw new Problem(this.#failure)
    return this.#read(maxBytes)
  }

  /** Gives up a body that has not arrived: reading it throws `code`, and the runtime need not keep what still comes. */
  fail(code: ProblemCode): void {
    this.#failure ??= code
    this.#reader?.cancel().catch(() => undefined)
  }

  async #read(maxBytes: number): Promise<Uint8Array> {
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
      if (this.#failure === undefined) {
        throw new Problem('malformed_request', { detail: 'The body broke off.' })
      }
    }
    if (this.#failure !== undefined) throw new Problem(this.#failure)
    const bytes = new Uint8Array(length)
    let offset = 0
    for (const chunk of chunks) {
      bytes.set(chunk, offset)
      offset += chunk.length
    }
    return bytes
  }
}

/** A request whose runtime passes its peer on. */
class FetchRequestWithPeer extends FetchRequest {
  readonly #info: PeerInfo | undefined

  constructor(request: Request, info: PeerInfo | undefined) {
    super(request)
    this.#info = info
  }

  override get address(): string | undefined {
    return this.#info?.remoteAddr?.hostname
  }
}

/** Stands for a target that is none: its percent-encoding is malformed, and so it is refused. */
const invalidTarget = '%'

/**
 * Path and query, as they stand in the URL of a request. Deno writes Host before them as it came, whatever it is: what
 * a Host says must not pass for a path. Bun writes nothing before them when there is no Host, or none that it knows.
 */
function targetOf({ url, headers }: Request): string {
  if (!isFramed(headers) || !isHost(headers.get('host') ?? '')) return invalidTarget
  // The absolute form may do without a path, and what stands behind it then may have a slash in it.
  const target = url.slice(/^[^/]+\/\/[^/?#]*/.exec(url)?.[0].length)
  return target.startsWith('/') ? target : `/${target}`
}

/**
 * Whether it is clear where a request ends. What parsers let through, and others count another way, would be another
 * request to them (RFC 9112 §6.1 and §6.3): equal lengths that were joined, and codings besides chunks.
 */
function isFramed(headers: Headers): boolean {
  const length = headers.get('content-length')
  const coding = headers.get('transfer-encoding')
  return (length === null || /^\d+$/.test(length)) && (coding === null || /^chunked$/i.test(coding))
}

/** Whether a value of Host has no character that is in no name, address or port (RFC 9110 §7.2, RFC 3986 §3.2.2). */
export function isHost(value: string): boolean {
  return !/[^!$-.0-;=A-[\]_a-z~]/.test(value)
}

/** What the last answer of a stem was made of. */
interface CachedHeaders {
  /** Copied by each response that is made with it. */
  readonly native: Headers
  headers: readonly string[]
  /** The body, which Bun and Deno send with less effort as text: they copy bytes first. */
  text: string | undefined
}

/** How many stems are remembered at most: what is made of one takes Deno 2.6 KB, more than most replies. */
const maxCachedHeaders = 2_048

const decoder = new TextDecoder()

/**
 * Makes responses of answers at little cost: of two answers with one stem, the second takes over from the first all but
 * the fields that are not the same.
 *
 * @param createFallback Makes the answer in place of one that can't be sent.
 */
export function createResponseConverter(
  createFallback: () => HttpResponse,
): (answer: HttpResponse) => WebResponse {
  let cachedByStem = new WeakMap<readonly string[], CachedHeaders>()
  let count = 0

  function toResponse({ status, headers, body, stem }: HttpResponse): Response {
    if (stem === undefined) {
      const content = body as string | Uint8Array<ArrayBuffer> | undefined ?? null
      // Workers compress what says `Content-Encoding`, unless told that it is compressed.
      const init = { status, headers: toHeaders(headers, status), encodeBody: 'manual' }
      return new Response(content, init)
    }
    let cached = cachedByStem.get(stem)
    if (cached === undefined || !haveSameNames(cached.headers, headers, stem.length)) {
      if (count++ % maxCachedHeaders === 0) cachedByStem = new WeakMap()
      cachedByStem.set(stem, cached = { native: toHeaders(headers), headers, text: undefined })
    } else {
      updateChanged(cached, headers, stem.length)
    }
    const { native: fields } = cached
    if (body === undefined) return new Response(null, { status, headers: fields })
    const text = typeof body === 'string' ? body : cached.text ??= decoder.decode(body)
    return new Response(text, { status, headers: fields })
  }

  return (answer) => {
    try {
      return toResponse(answer)
    } catch {
      // A header that must not be sent: nothing has been sent, and what was kept may be of two answers.
      if (answer.stem !== undefined) cachedByStem.delete(answer.stem)
      return toResponse(createFallback())
    }
  }
}

function updateChanged(cached: CachedHeaders, headers: readonly string[], from: number): void {
  for (let index = from; index < headers.length; index += 2) {
    const value = headers[index + 1]!
    if (value !== cached.headers[index + 1]) cached.native.set(headers[index]!, value)
  }
  cached.headers = headers
}

/** Whether two lists of fields have the same names from an index on. */
function haveSameNames(some: readonly string[], others: readonly string[], from: number): boolean {
  if (some.length !== others.length) return false
  for (let index = from; index < some.length; index += 2) if (some[index] !== others[index]) return false
  return true
}

function toHeaders(headers: readonly string[], status?: number): Headers {
  const fields = new Headers()
  for (let index = 0; index < headers.length; index += 2) fields.append(headers[index]!, headers[index + 1]!)
  // What is late may go on to come, and is nobody's.
  if (status === 408) fields.append('Connection', 'close')
  return fields
}
