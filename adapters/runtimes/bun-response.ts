/** Responses for `Bun.serve`. */
import { sentHeaders } from '../../core/http/fetch.ts'
import type { HttpResponse } from '../../core/http/message.ts'

/** What later responses with the same cached body are made from, or all those without one. */
interface Model {
  /** The source of headers, which later responses copy; it is never sent itself. */
  readonly response: Response
  headers: readonly string[]
  /** Text where possible: Bun copies bytes before it sends them. */
  readonly content: string | Uint8Array<ArrayBuffer>
}

const maxModels = 2_048

const decoder = new TextDecoder()
/** The key of responses without a cached body. */
const noCachedBody = new Uint8Array()
/** The constructor of Bun copies headers, those of a host that replaces it may not. */
const BunResponse = globalThis.Response

/**
 * Converts responses to `Response`. Bun copies headers faster than it makes them: of two responses with the same
 * cached body, the second has a copy of the headers of the first, in which only those that differ are set.
 *
 * @param createFallback Makes the response in place of one that cannot be sent.
 */
export function createBunResponseConverter(
  createFallback: (error: unknown) => HttpResponse,
): (response: HttpResponse) => Response {
  let models = new WeakMap<Uint8Array, Model>()
  let count = 0

  function modelFor(key: Uint8Array, headers: readonly string[]): Model {
    const known = models.get(key)
    if (known !== undefined && updateHeaders(known, headers)) return known
    if (count++ % maxModels === 0) models = new WeakMap()
    const isCompressed = headers.includes('Content-Encoding')
    const content = isCompressed ? key as Uint8Array<ArrayBuffer> : decoder.decode(key)
    const model = { response: addHeaders(new BunResponse(content), headers), headers, content }
    models.set(key, model)
    return model
  }

  function toResponse(response: HttpResponse): Response {
    const { status, body } = response
    const isCached = body instanceof Uint8Array
    const model = modelFor(isCached ? body : noCachedBody, sentHeaders(response))
    const content = isCached ? model.content : body ?? null
    return new BunResponse(content, { status, headers: model.response.headers })
  }

  return (response) => {
    try {
      return response.own ?? toResponse(response)
    } catch (error) {
      // A header has an invalid value: the headers of a model may now be those of two responses.
      models = new WeakMap()
      return toResponse(createFallback(error))
    }
  }
}

/** @returns Whether the header names are the same, and the values now are. */
function updateHeaders(model: Model, headers: readonly string[]): boolean {
  if (model.headers.length !== headers.length) return false
  const native = model.response.headers
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index]!
    const value = headers[index + 1]!
    if (name !== model.headers[index]) return false
    if (value !== model.headers[index + 1]) native.set(name, value)
  }
  model.headers = headers
  return true
}

function addHeaders(response: Response, headers: readonly string[]): Response {
  const native = response.headers
  // Of the text.
  native.delete('Content-Type')
  for (let index = 0; index < headers.length; index += 2) native.append(headers[index]!, headers[index + 1]!)
  return response
}
