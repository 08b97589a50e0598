import type { Sha256 } from '../lib/digest.ts'
import { createRequestIds } from '../lib/ids.ts'
import { entityTag, matchesNone, type ServiceNames } from './headers.ts'
import {
  type BodyContent,
  byteLength,
  type CachedBody,
  encode,
  type HandlerResult,
  type HttpResponse,
  type ProblemPage,
  type RateLimitFields,
  type RequestMeta,
  type StaticDocument,
} from './message.ts'
import { type Problem, problemDocument, PROBLEMS } from './problem.ts'
import type { Query } from './query.ts'

const json = 'application/json; charset=utf-8'
const htmlType = 'text/html; charset=utf-8'

/** The fields that differ between responses from one cached body: their values are set in a copy of its headers. */
const changing = ['X-Request-Id', '', 'RateLimit-Policy', '', 'RateLimit', '']

/** Serialises results and problems. Headers are names and values in turn. */
export interface ResponseWriter {
  nextRequestId(): string
  /** Serialises the result of a GET that takes a key. @param path The path of the request, as sent. */
  toCachedBody(result: HandlerResult, path: string, query: Query): CachedBody
  toCachedDocument(document: StaticDocument, type: string): CachedBody
  /** Makes the document with the content coding gzip. */
  compress(document: CachedBody): Promise<CachedBody>
  /** Responds to a POST, or to a GET that must not be cached. */
  respondUncached(result: HandlerResult, status: number, meta: RequestMeta): HttpResponse
  /** Headers of a response of the host's, which may have its own values for the first two. */
  hostHeaders(meta: RequestMeta): string[]
  /**
   * @param path The path of the request, without anything that looks like a key.
   * @param page Makes a page in place of the problem document.
   */
  respondProblem(problem: Problem, meta: RequestMeta, path: string, page?: ProblemPage): HttpResponse
  respondOptions(allow: string, requestId: string): HttpResponse
}

/**
 * @param version Of the API.
 * @param problemBase Base of the `type` of problems, without a trailing slash.
 */
export function createResponseWriter(
  names: ServiceNames,
  version: string,
  problemBase: string,
  sha256: Sha256,
): ResponseWriter {
  const common = ['X-Content-Type-Options', 'nosniff', names.versionHeader, version]
  const varyByKey = `Authorization, ${names.keyHeader}, ${names.versionHeader}`

  return {
    nextRequestId: createRequestIds(),

    toCachedBody(result, path, query) {
      const text = serialize(result)
      const caching = ['Cache-Control', 'private, no-cache', 'Vary', varyByKey]
      const headers = [...caching, ...common, ...nextLink(result, path, query), ...result.headers ?? []]
      return cachedBody(text, entityTag(text, sha256), contentHeaders(json, byteLength(text)), headers)
    },

    toCachedDocument({ text, headers = [], variesBy }, type) {
      const vary = `${variesBy ? `${variesBy}, ` : ''}Accept-Encoding`
      const caching = ['Cache-Control', 'no-cache', 'Vary', vary]
      const body = encode(text)
      const content = contentHeaders(type, body.length)
      return cachedBody(body, entityTag(text, sha256), content, [...caching, ...common, ...headers])
    },

    compress: (document) => compress(document, sha256),

    respondUncached(result, status, meta) {
      const { html, headers, cacheControl } = result
      const type = html === undefined ? json : htmlType
      return uncached(status, type, html ?? serialize(result), meta, common, headers, cacheControl)
    },

    hostHeaders({ requestId, rateLimit }) {
      const headers = ['Cache-Control', 'private, no-store', 'Vary', varyByKey]
      headers.push(names.versionHeader, version, 'X-Request-Id', requestId, ...rateLimitHeaders(rateLimit))
      return headers
    },

    respondProblem(problem, meta, path, page) {
      const { code, members } = problem
      const { retryAfterSeconds, allow } = members
      const { status } = PROBLEMS[code]
      const headers = ['Referrer-Policy', 'no-referrer', ...challenge(problem, names.name)]
      if (allow !== undefined) headers.push('Allow', allow)
      if (retryAfterSeconds !== undefined) headers.push('Retry-After', String(retryAfterSeconds))
      if (page !== undefined) {
        const { html, headers: more } = page(problem, meta.requestId)
        return uncached(status, htmlType, html, meta, common, [...headers, ...more])
      }
      const document = problemDocument(code, members, problemBase, toReference(path), meta.requestId)
      const text = JSON.stringify(document)
      return uncached(status, 'application/problem+json', text, meta, common, headers)
    },

    respondOptions(allow, requestId) {
      const headers = ['Allow', allow, ...common, 'X-Request-Id', requestId]
      return { status: 204, headers, body: undefined }
    },
  }
}

async function compress({ body, headers }: CachedBody, sha256: Sha256): Promise<CachedBody> {
  const stream = new Response(body as string | Uint8Array<ArrayBuffer>).body!
  const zipped = new Response(stream.pipeThrough(new CompressionStream('gzip')))
  const gzip = new Uint8Array(await zipped.arrayBuffer())
  // Runtimes compress differently, and a strong tag identifies bytes. Latin-1 maps bytes to characters one to one.
  const etag = entityTag(new TextDecoder('latin1').decode(gzip), sha256)
  const content = [...contentHeaders(headers[1]!, gzip.length), 'Content-Encoding', 'gzip']
  return cachedBody(gzip, etag, content, headers.slice(headers.indexOf('ETag') + 2, -changing.length))
}

function uncached(
  status: number,
  type: string,
  text: string,
  { request, requestId, rateLimit }: RequestMeta,
  common: readonly string[],
  headers: readonly string[] = [],
  cacheControl: string = 'no-store',
): HttpResponse {
  const fields = contentHeaders(type, byteLength(text))
  fields.push('Cache-Control', cacheControl, ...common, 'X-Request-Id', requestId)
  fields.push(...headers, ...rateLimitHeaders(rateLimit))
  return { status, headers: fields, body: request?.method === 'HEAD' ? undefined : text }
}

function rateLimitHeaders(fields: RateLimitFields | undefined): string[] {
  return fields ? ['RateLimit-Policy', fields.policy, 'RateLimit', fields.limit] : []
}

/** Responds to a GET or HEAD; with 304 if the client has the body already (RFC 9110 §15.4.5). */
export function respondCached(
  { body, etag, headers }: CachedBody,
  { request, requestId, rateLimit }: RequestMeta,
): HttpResponse {
  const ifNoneMatch = request?.header('if-none-match')
  const isNotModified = ifNoneMatch !== undefined && matchesNone(ifNoneMatch, etag)
  const fields = headers.slice(isNotModified ? headers.indexOf('ETag') : 0)
  const start = fields.length - changing.length
  fields[start + 1] = requestId
  if (rateLimit === undefined) fields.length = start + 2
  else {
    fields[start + 3] = rateLimit.policy
    fields[start + 5] = rateLimit.limit
  }
  return {
    status: isNotModified ? 304 : 200,
    headers: fields,
    body: isNotModified || request?.method === 'HEAD' ? undefined : body,
  }
}

function cachedBody(
  body: BodyContent,
  etag: string,
  content: readonly string[],
  headers: readonly string[],
): CachedBody {
  return { body, etag, headers: [...content, 'ETag', etag, ...headers, ...changing] }
}

function serialize({ data, page }: HandlerResult): string {
  return JSON.stringify(page === undefined ? { data } : { data, page })
}

function contentHeaders(type: string, bytes: number): string[] {
  return ['Content-Type', type, 'Content-Length', String(bytes)]
}

/**
 * A path as a URI reference (RFC 3986 §4.2): what it cannot contain, and an authority after `//`, is percent-encoded.
 */
function toReference(path: string): string {
  const encoded = encodeURI(path.toWellFormed()).replaceAll('%25', '%')
  return encoded.startsWith('//')
    ? encoded.replace(/[:@]/g, (character) => encodeURIComponent(character))
    : encoded
}

/** The header `WWW-Authenticate` of a problem that has one. */
function challenge(problem: Problem, realm: string): string[] {
  const parameters = challengeParameters(problem)
  return parameters === undefined ? [] : ['WWW-Authenticate', `Bearer realm="${realm}"${parameters}`]
}

/** A missing credential is challenged without an error code (RFC 6750 §3). */
function challengeParameters({ code, members }: Problem): string | undefined {
  if (code === 'key_missing') return ''
  if (code === 'scope_missing') return `, error="insufficient_scope", scope="${members.required_scope}"`
  return PROBLEMS[code].status === 401 ? ', error="invalid_token"' : undefined
}

/**
 * The next page, relative to the request (RFC 8288 §3.1). A reference of a query alone means another path by
 * RFC 2396 §5.2, which Java follows; a first segment with a colon would be a scheme (RFC 3986 §4.2).
 */
function nextLink({ page }: HandlerResult, path: string, query: Query): string[] {
  if (page === undefined || page.next_cursor === null) return []
  const next = new URLSearchParams()
  for (const [name, values] of query.values) {
    if (name !== 'cursor') { for (const value of values) next.append(name, value) }
  }
  next.append('cursor', page.next_cursor)
  const segment = toReference(path.slice(path.lastIndexOf('/') + 1))
  return ['Link', `<${segment.includes(':') ? './' : ''}${segment}?${next}>; rel="next"`]
}
