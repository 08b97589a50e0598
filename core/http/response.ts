import type { Sha256 } from '../lib/digest.ts'
import { createRequestIds } from '../lib/ids.ts'
import { API_VERSION, entityTag, matchesNone, type ServiceNames } from './headers.ts'
import {
  byteLength,
  type CachedBody,
  encode,
  type HandlerResult,
  type HttpResponse,
  type RequestMeta,
  type StaticDocument,
} from './message.ts'
import {
  DEFAULT_PROBLEM_BASE,
  type Problem,
  type ProblemCode,
  type ProblemMembers,
  PROBLEMS,
  problemTitle,
} from './problem.ts'
import type { Query } from './query.ts'

/** Makes answers of replies and problems. */
export interface ResponseWriter {
  nextRequestId(): string
  /** Serialises what a handler replied to a GET with a key. */
  toCachedBody(reply: HandlerResult, query: Query): CachedBody
  /** Serialises a document that anybody may have. */
  toCachedDocument(publication: StaticDocument, contentType: string): CachedBody
  /** The same document in the content coding gzip. */
  compress(document: CachedBody): Promise<CachedBody>
  /** The answer to a GET or HEAD, 304 when the client has it already (RFC 9110 §15.4.5). */
  respond(representation: CachedBody, asked: RequestMeta, fields: readonly string[]): HttpResponse
  /** The answer of a POST, and of a GET that must not be kept by anybody. */
  respondUncached(
    reply: HandlerResult,
    status: number,
    asked: RequestMeta,
    fields: readonly string[],
  ): HttpResponse
  /** 204 for OPTIONS. */
  respondOptions(methods: string, requestId: string): HttpResponse
  /** The answer that a problem becomes. @param path Where it happened, safe to be said. */
  respondProblem(problem: Problem, asked: RequestMeta, path: string, fields: readonly string[]): HttpResponse
}

/** @param problemBase Base of the `type` of problems, without a slash at its end. */
export function createResponseWriter(
  names: ServiceNames,
  problemBase: string = DEFAULT_PROBLEM_BASE,
  sha256: Sha256,
): ResponseWriter {
  const nextRequestId = createRequestIds()
  const constant = ['X-Content-Type-Options', 'nosniff', names.versionHeader, API_VERSION]
  const caching = [
    'Cache-Control',
    'private, no-cache',
    'Vary',
    `Authorization, ${names.keyHeader}, ${names.versionHeader}`,
  ]

  function serialize({ data, page }: HandlerResult): string {
    return JSON.stringify(page === undefined ? { data } : { data, page })
  }

  function toCachedBody(reply: HandlerResult, query: Query): CachedBody {
    const text = serialize(reply)
    const etag = entityTag(text, sha256)
    const fields = [
      ...bodyFields('application/json; charset=utf-8', byteLength(text)),
      'ETag',
      etag,
      ...caching,
      ...constant,
    ]
    return { body: text, etag, headers: fields.concat(nextLink(reply, query), reply.headers ?? []) }
  }

  function toCachedDocument({ text, headers: fields = [] }: StaticDocument, contentType: string): CachedBody {
    const etag = entityTag(text, sha256)
    const body = encode(text)
    const all = [
      ...bodyFields(contentType, body.length),
      'ETag',
      etag,
      'Cache-Control',
      'no-cache',
      'Vary',
      'Accept-Encoding',
      ...constant,
    ]
    return { body, etag, headers: all.concat(fields) }
  }

  async function compress({ body, headers: fields }: CachedBody): Promise<CachedBody> {
    const stream = new Response(body as string | Uint8Array<ArrayBuffer>).body!
    const zipped = new Response(stream.pipeThrough(new CompressionStream('gzip')))
    const gzip = new Uint8Array(await zipped.arrayBuffer())
    // Of these bytes, because runtimes compress differently and a strong tag stands for bytes. Latin-1 keeps them apart.
    const etag = entityTag(new TextDecoder('latin1').decode(gzip), sha256)
    const [, type = ''] = fields
    const others = fields.slice(fields.indexOf('ETag') + 2)
    return {
      body: gzip,
      etag,
      headers: [...bodyFields(type, gzip.length), 'Content-Encoding', 'gzip', 'ETag', etag, ...others],
    }
  }

  function respond(
    { body, etag, headers: fields }: CachedBody,
    asked: RequestMeta,
    more: readonly string[],
  ): HttpResponse {
    const isNotModified = asked.ifNoneMatch !== undefined && matchesNone(asked.ifNoneMatch, etag)
    return {
      status: isNotModified ? 304 : 200,
      // Spread, because `concat` takes three times as long.
      headers: [
        ...(isNotModified ? fields.slice(fields.indexOf('ETag')) : fields),
        'X-Request-Id',
        asked.requestId,
        ...more,
      ],
      stem: isNotModified ? undefined : fields,
      body: isNotModified || asked.method === 'HEAD' ? undefined : body,
    }
  }

  function respondUncached(
    reply: HandlerResult,
    status: number,
    asked: RequestMeta,
    fields: readonly string[],
  ): HttpResponse {
    const all = [...(reply.headers ?? []), ...fields]
    return writeUncached(status, 'application/json; charset=utf-8', serialize(reply), asked, all)
  }

  function writeUncached(
    status: number,
    type: string,
    text: string,
    { requestId, method }: RequestMeta,
    fields: readonly string[],
  ): HttpResponse {
    return {
      status,
      headers: [
        ...bodyFields(type, byteLength(text)),
        'Cache-Control',
        'no-store',
        ...constant,
        'X-Request-Id',
        requestId,
        ...fields,
      ],
      body: method === 'HEAD' ? undefined : text,
    }
  }

  function respondProblem(
    { code, members }: Problem,
    asked: RequestMeta,
    path: string,
    fields: readonly string[],
  ): HttpResponse {
    const { status, detail } = PROBLEMS[code]
    const { retryAfterSeconds, allow, ...shown } = members
    const document = {
      type: `${problemBase}/${code.replaceAll('_', '-')}`,
      title: problemTitle(code),
      status,
      code,
      detail,
      instance: path,
      request_id: asked.requestId,
      ...shown,
    }
    return writeUncached(status, 'application/problem+json', JSON.stringify(document), asked, [
      ...challenge(code, members, names.name),
      ...(allow === undefined ? [] : ['Allow', allow]),
      ...(retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)]),
      ...fields,
    ])
  }

  return {
    nextRequestId,
    toCachedBody,
    toCachedDocument,
    compress,
    respond,
    respondUncached,
    respondProblem,
    respondOptions: (methods, requestId) => ({
      status: 204,
      headers: ['Allow', methods, ...constant, 'X-Request-Id', requestId],
      body: undefined,
    }),
  }
}

function bodyFields(type: string, bytes: number): string[] {
  return ['Content-Type', type, 'Content-Length', String(bytes)]
}

/** The challenge of a refused credential: no error code without one (RFC 6750 §3). */
function challenge(code: ProblemCode, members: ProblemMembers, realm: string): string[] {
  if (code === 'scope_missing') {
    return [
      'WWW-Authenticate',
      `Bearer realm="${realm}", error="insufficient_scope", scope="${members.required_scope}"`,
    ]
  }
  if (PROBLEMS[code].status !== 401) return []
  const error = code === 'key_missing' ? '' : ', error="invalid_token"'
  return ['WWW-Authenticate', `Bearer realm="${realm}"${error}`]
}

/** The page after this one, as a reference relative to the request (RFC 8288 §3.1): a query is all it takes. */
function nextLink({ page }: HandlerResult, query: Query): string[] {
  if (page === undefined || page.next_cursor === null) return []
  const next = new URLSearchParams()
  for (const [name, values] of query.values) {
    if (name !== 'cursor') { for (const value of values) next.append(name, value) }
  }
  next.append('cursor', page.next_cursor)
  return ['Link', `<?${next}>; rel="next"`]
}
