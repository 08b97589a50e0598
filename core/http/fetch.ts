import type { MaybePromise } from '../ports.ts'
import { BODY_TAKEN } from './body.ts'
import type { Answer, Exchange } from './exchange.ts'
import { Problem, type ProblemCode } from './problem.ts'
import { createResponder } from './responses.ts'
import type { WebRequest, WebResponse } from './web.ts'

/** What a runtime tells of a request beside it. Whatever has another shape is passed over. */
export interface RequestInfo {
  /** The peer of the connection; `hostname` is its IP address, as `Deno.serve` gives it. */
  readonly remoteAddr?: { readonly hostname?: string | undefined } | undefined
}

/**
 * Wraps the service as a fetch handler.
 *
 * @param refuse Makes the answer in place of one that can't be sent.
 */
export function createFetch(
  handle: (exchange: Exchange) => MaybePromise<Answer>,
  refuse: () => Answer,
): (request: WebRequest, info?: RequestInfo) => Promise<WebResponse> {
  const respond = createResponder(refuse)
  return async (request, info) => respond(await handle(new InformedExchange(request, info)))
}

/** A request of the Fetch standard as core reads it. A class for its prototype: a request then costs one object. */
export class FetchExchange implements Exchange {
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
    if (this.request.bodyUsed) throw new Error(BODY_TAKEN)
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
    const whole = new Uint8Array(length)
    let offset = 0
    for (const chunk of chunks) {
      whole.set(chunk, offset)
      offset += chunk.length
    }
    return whole
  }
}

/** A request whose runtime passes its peer on. */
class InformedExchange extends FetchExchange {
  readonly #info: RequestInfo | undefined

  constructor(request: Request, info: RequestInfo | undefined) {
    super(request)
    this.#info = info
  }

  override get address(): string | undefined {
    return this.#info?.remoteAddr?.hostname
  }
}

/** Stands for a target that is none: its percent-encoding is malformed, and so it is refused. */
const noTarget = '%'

/**
 * Path and query, as they stand in the URL of a request. Deno writes Host before them as it came, whatever it is: what
 * a Host says must not pass for a path. Bun writes nothing before them when there is no Host, or none that it knows.
 */
function targetOf({ url, headers }: Request): string {
  if (!isFramed(headers) || !isHost(headers.get('host') ?? '')) return noTarget
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
