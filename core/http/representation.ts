import type { Sha256 } from '../digest.ts'
import type { ServiceNames } from '../service-names.ts'
import type { Publication, Reply } from '../routes/route.ts'
import { VERSION } from '../version.ts'
import { byteLength, type Content, encode } from './content.ts'
import { entityTag, matchesNone } from './etag.ts'
import type { Answer } from './exchange.ts'
import {
  DEFAULT_PROBLEM_BASE,
  type Problem,
  type ProblemCode,
  type ProblemMembers,
  PROBLEMS,
  titleOf,
} from './problem.ts'
import type { Query } from './query.ts'
import { createRequestIds } from './request-id.ts'

/** A reply as content, before it is known how it is asked for. */
export interface Representation {
  readonly body: Content
  readonly etag: string
  /** Header fields that every use of it has, names and values in turn, those of the body before `ETag`. */
  readonly fields: readonly string[]
}

/** Makes answers of replies and problems. */
export interface Representing {
  nextRequestId(): string
  /** Serialises what a handler replied to a GET with a key. */
  represent(reply: Reply, query: Query): Representation
  /** Serialises a document that anybody may have. */
  publish(publication: Publication, contentType: string): Representation
  /** The same document in the content coding gzip. */
  compress(document: Representation): Promise<Representation>
  /** The answer to a GET or HEAD, 304 when the client has it already (RFC 9110 §15.4.5). */
  present(representation: Representation, asked: Asked, fields: readonly string[]): Answer
  /** The answer of a POST, and of a GET that must not be kept by anybody. */
  tell(reply: Reply, status: number, asked: Asked, fields: readonly string[]): Answer
  /** 204 for OPTIONS. */
  allow(methods: string, requestId: string): Answer
  /** The answer that a problem becomes. @param path Where it happened, safe to be said. */
  problem(problem: Problem, asked: Asked, path: string, fields: readonly string[]): Answer
}

/** What of a request its answer depends on. */
export interface Asked {
  readonly requestId: string
  readonly method: string
  readonly ifNoneMatch?: string | undefined
}

/** @param problemBase Base of the `type` of problems, without a slash at its end. */
export function createRepresentation(
  names: ServiceNames,
  problemBase: string = DEFAULT_PROBLEM_BASE,
  sha256: Sha256,
): Representing {
  const nextRequestId = createRequestIds()
  const constant = ['X-Content-Type-Options', 'nosniff', names.versionHeader, VERSION]
  const caching = [
    'Cache-Control',
    'private, no-cache',
    'Vary',
    `Authorization, ${names.keyHeader}, ${names.versionHeader}`,
  ]

  function serialise({ data, page }: Reply): string {
    return JSON.stringify(page === undefined ? { data } : { data, page })
  }

  function represent(reply: Reply, query: Query): Representation {
    const text = serialise(reply)
    const etag = entityTag(text, sha256)
    const fields = [
      ...bodyFields('application/json; charset=utf-8', byteLength(text)),
      'ETag',
      etag,
      ...caching,
      ...constant,
    ]
    return { body: text, etag, fields: fields.concat(nextLink(reply, query), reply.fields ?? []) }
  }

  function publish({ text, fields = [] }: Publication, contentType: string): Representation {
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
    return { body, etag, fields: all.concat(fields) }
  }

  async function compress({ body, fields }: Representation): Promise<Representation> {
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
      fields: [...bodyFields(type, gzip.length), 'Content-Encoding', 'gzip', 'ETag', etag, ...others],
    }
  }

  function present({ body, etag, fields }: Representation, asked: Asked, more: readonly string[]): Answer {
    const known = asked.ifNoneMatch !== undefined && matchesNone(asked.ifNoneMatch, etag)
    return {
      status: known ? 304 : 200,
      // Spread, because `concat` takes three times as long.
      headers: [
        ...(known ? fields.slice(fields.indexOf('ETag')) : fields),
        'X-Request-Id',
        asked.requestId,
        ...more,
      ],
      stem: known ? undefined : fields,
      body: known || asked.method === 'HEAD' ? undefined : body,
    }
  }

  function tell(reply: Reply, status: number, asked: Asked, fields: readonly string[]): Answer {
    const all = [...(reply.fields ?? []), ...fields]
    return send(status, 'application/json; charset=utf-8', serialise(reply), asked, all)
  }

  function send(
    status: number,
    type: string,
    text: string,
    { requestId, method }: Asked,
    fields: readonly string[],
  ): Answer {
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

  function problem(
    { code, members }: Problem,
    asked: Asked,
    path: string,
    fields: readonly string[],
  ): Answer {
    const { status, detail } = PROBLEMS[code]
    const { retryAfterSeconds, allow, ...shown } = members
    const document = {
      type: `${problemBase}/${code.replaceAll('_', '-')}`,
      title: titleOf(code),
      status,
      code,
      detail,
      instance: path,
      request_id: asked.requestId,
      ...shown,
    }
    return send(status, 'application/problem+json', JSON.stringify(document), asked, [
      ...challenge(code, members, names.name),
      ...(allow === undefined ? [] : ['Allow', allow]),
      ...(retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)]),
      ...fields,
    ])
  }

  return {
    nextRequestId,
    represent,
    publish,
    compress,
    present,
    tell,
    problem,
    allow: (methods, requestId) => ({
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
function nextLink({ page }: Reply, query: Query): string[] {
  if (page === undefined || page.next_cursor === null) return []
  const next = new URLSearchParams()
  for (const [name, values] of query.values) {
    if (name !== 'cursor') { for (const value of values) next.append(name, value) }
  }
  next.append('cursor', page.next_cursor)
  return ['Link', `<?${next}>; rel="next"`]
}
