import { parseJson } from '../../core/lib/json.ts'
import { assertKind } from '../../core/lib/options.ts'
import type { WebRequest, WebResponse } from '../../core/lib/web-globals.ts'
import { ignoreFailure } from '../../core/lib/promise.ts'
import { MAX_RESPONSE_BYTES, readText } from './transport.ts'

/** The place for responses: a `Map`, or an LRU map or database, which bound the size. Not used when it fails. */
export interface ResponseCache {
  /** Returns the text under a name of 44 characters, or a promise of it; any value but a text if nothing is kept. */
  get(name: string): unknown
  /** Keeps a text, JSON of an ETag and a body, under a name. */
  set(name: string, text: string): unknown
}

/**
 * Makes a `fetch` for a client that keeps responses to GET requests, and has the service send them again only if they
 * changed (RFC 9110 §13). Names in the cache are digests of URL and key: no other key or partner finds a response.
 *
 * @param send Sends requests; defaults to the global `fetch`.
 */
export function createCachingFetch(
  cache: ResponseCache,
  send: (request: WebRequest) => WebResponse | Promise<WebResponse> = (request) => fetch(request),
): (request: WebRequest) => Promise<WebResponse> {
  if (typeof cache?.get !== 'function' || typeof cache.set !== 'function') {
    throw new TypeError('createCachingFetch: cache must have the methods get and set, as a Map has.')
  }
  assertKind('createCachingFetch: send', send, 'a function')
  return async (request) => {
    if (request.method !== 'GET') return await send(request)
    const key = [...request.headers].filter(([name]) => name.endsWith('-partner-key'))
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(`${key} ${request.url}`))
    const name = btoa(String.fromCharCode(...new Uint8Array(digest)))
    const text = await Promise.resolve(name).then(cache.get.bind(cache)).catch(() => undefined)
    const entry = parseJson(String(text))
    const [etag, kept]: readonly string[] = Array.isArray(entry) ? entry : []
    if (etag) request.headers.set('if-none-match', etag)
    const response = await send(request)
    const { status, headers } = response
    if (etag && status === 304) return new Response(kept, { headers })
    const current = headers.get('etag')
    if (status !== 200 || !current) return response
    const body = await readText(response.body ?? [], MAX_RESPONSE_BYTES)
    if (body === undefined) throw new TypeError('The response is too long.')
    ignoreFailure(() => cache.set(name, JSON.stringify([current, body])))
    return new Response(body, { headers })
  }
}
