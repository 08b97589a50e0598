import type { CachedResponse } from './cache/response-cache.ts'
import type { ClientAddress } from './http/headers.ts'
import type { HttpRequest, RequestMeta } from './http/message.ts'
import { type Query, readQuery } from './http/query.ts'
import type { Principal } from './keys/principal.ts'
import type { Revision } from './ports/facts.ts'
import type { Route } from './routes/route.ts'

/** A request on its way through the pipeline: what is known of it so far. */
export interface RequestContext {
  readonly request: HttpRequest
  readonly requestId: string
  /** Milliseconds on the clock that is never set back. */
  readonly startedAt: number
  /** The instant at which the request is judged, milliseconds since the epoch. */
  now: number
  /** As sent, without the query; `/` until it is known to be a path. */
  path: string
  route: Route | undefined
  /** The path's `:slug`, still percent-encoded. */
  slug: string
  client: ClientAddress | undefined
  /** What was kept of an earlier answer to the same target, whether it still holds good or not. */
  cached: CachedResponse | undefined
  revision: Revision
  principal: Principal | undefined
  /** Whether a credential was refused. */
  credentialRefused: boolean
  /** Whether the credential is being looked up, and counted as a failure until that is decided. */
  isLookUpPending: boolean
  /** The count of the failure, which has to be known before it is answered. Never rejects. */
  failureCount: Promise<number | undefined> | undefined
  /** The RateLimit fields, once limits have been met. */
  rateLimitHeaders: readonly string[]
  /** What was thrown, when something was. */
  error: unknown
}

const unknownRevision: Revision = { facts: '', content: '' }

/** Begins a call. */
export function createRequestContext(
  request: HttpRequest,
  requestId: string,
  startedAt: number,
  now: number,
): RequestContext {
  return {
    request,
    requestId,
    startedAt,
    now,
    path: '/',
    route: undefined,
    slug: '',
    client: undefined,
    cached: undefined,
    revision: unknownRevision,
    principal: undefined,
    credentialRefused: false,
    isLookUpPending: false,
    failureCount: undefined,
    rateLimitHeaders: [],
    error: undefined,
  }
}

/** What of a call its answer depends on. */
export function requestMetaOf({ request: exchange, requestId }: RequestContext): RequestMeta {
  return { requestId, method: exchange.method, ifNoneMatch: exchange.header('if-none-match') }
}

/** The query of a call whose path is known. */
export function queryOf({ request: exchange, path }: RequestContext): Query {
  return readQuery(exchange.target.slice(path.length + 1))
}
