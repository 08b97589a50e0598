import type { MaybePromise } from '../ports.ts'
import type { Answer, Exchange } from './exchange.ts'
import { Problem } from './problem.ts'

/** What a runtime tells of a request beside it. Whatever has another shape is passed over. */
export interface RequestInfo {
  /** The peer of the connection; `hostname` is its IP address, as `Deno.serve` gives it. */
  readonly remoteAddr?: { readonly hostname?: string }
}

/** Wraps the service as a fetch handler. */
export function createFetch(
  handle: (exchange: Exchange) => MaybePromise<Answer>,
): (request: Request, info?: RequestInfo) => Promise<Response> {
  return async (request, info) => {
    const { status, headers, body } = await handle(new FetchExchange(request, info?.remoteAddr?.hostname))
    const fields = new Headers()
    for (let index = 0; index < headers.length; index += 2) {
      fields.append(headers[index]!, headers[index + 1]!)
    }
    return new Response(body as string | Uint8Array<ArrayBuffer> | undefined ?? null, {
      status,
      headers: fields,
    })
  }
}

/** A class for its prototype: a request then costs one object, whatever of it is asked for. */
class FetchExchange implements Exchange {
  readonly method: string
  readonly target: string
  readonly address: string | undefined
  readonly #request: Request

  constructor(request: Request, address: string | undefined) {
    this.address = address
    this.method = request.method
    this.target = targetOf(request.url)
    this.#request = request
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined
  }

  async body(maxBytes: number): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    let length = 0
    try {
      for await (const chunk of this.#request.body ?? []) {
        length += chunk.length
        if (length > maxBytes) throw new Problem('body_too_large')
        chunks.push(chunk)
      }
    } catch (error) {
      throw error instanceof Problem
        ? error
        : new Problem('malformed_request', { detail: 'The body broke off.' })
    }
    const body = new Uint8Array(length)
    let offset = 0
    for (const chunk of chunks) {
      body.set(chunk, offset)
      offset += chunk.length
    }
    return body
  }
}

/** Path and query of an absolute URL, as they stand in it. */
function targetOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const end = url.indexOf('#')
  return start < 0 ? '/' : url.slice(start, end < 0 ? undefined : end)
}
