import type { CachedResponse, ResponseCache } from './cache/response-cache.ts'
import type { RevisionCache } from './cache/revision-cache.ts'
import type { JsonBody, JsonObject } from './http/body.ts'
import { type ClientAddress, clientAddressOf } from './http/client-address.ts'
import type { ServiceNames } from './http/headers.ts'
import type {
  HttpRequest,
  HttpResponse,
  ProblemPage,
  RateLimitFields,
  StaticDocument,
} from './http/message.ts'
import { type Query, readQuery } from './http/query.ts'
import type { ResponseWriter } from './http/response.ts'
import type { Authenticator } from './keys/authenticator.ts'
import type { LastUsedRecorder } from './keys/last-used.ts'
import type { Principal } from './keys/principal.ts'
import type { Clock } from './lib/clock.ts'
import type { MaybePromise } from './lib/promise.ts'
import type { FailedAuthentications } from './limits/failed-authentications.ts'
import type { Limiter, QuotaObserver } from './limits/limiter.ts'
import type { RequestLogger } from './log.ts'
import type { Key, Scope, SelfService } from './model.ts'
import type { Grant } from './policy/decide.ts'
import type { Revision } from './ports/facts.ts'
import type { Observer } from './ports/observer.ts'
import type { UsageCounter } from './reports/usage-counter.ts'
import {
  type HandlerContext,
  type KeyedRoute,
  NO_PARAMS,
  type PathValues,
  type Route,
} from './routes/route.ts'
import type { RouteTable } from './routes/router.ts'

/** What the steps of the pipeline share between requests. */
export interface Service {
  readonly names: ServiceNames
  readonly routes: RouteTable
  readonly trustedProxies: number
  readonly allowBrowsers: boolean
  /** Milliseconds on a monotonic clock. */
  elapsed(): number
  readonly clock: Clock
  readonly revisionCache: RevisionCache
  readonly authenticator: Authenticator
  readonly failures: FailedAuthentications
  readonly limiter: Limiter
  readonly quotaCounted: QuotaObserver
  readonly responseCache: ResponseCache<KeyedRoute>
  readonly writer: ResponseWriter
  readonly lastUsed: LastUsedRecorder
  readonly usage: UsageCounter
  readonly logger: RequestLogger
  readonly observer: Observer | undefined
  readonly handlerContext: HandlerContext
  /** @param endpoint The operation that it is about, if its path names one. */
  loadDocument(mediaType: string, endpoint: string | undefined): Promise<StaticDocument>
}

/** A request for a route of the host's own router. */
export interface HostCall {
  readonly route: KeyedRoute
  /**
   * @param headers Names and values in turn; the first two may be replaced by the host.
   * @param body Of a request that has one.
   */
  respond(grant: Grant, headers: readonly string[], body: JsonObject | undefined): MaybePromise<HttpResponse>
}

const unknownRevision: Revision = { facts: '', content: '' }
const emptyQuery: Query = readQuery('')

/** The state of one request in the pipeline. */
export class RequestContext {
  readonly service: Service
  request: HttpRequest
  readonly host: HostCall | undefined
  readonly requestId: string
  /** Milliseconds on the monotonic clock. */
  readonly startedAt: number
  /** The instant at which the request is checked, milliseconds since the epoch. */
  now: number
  /** The path as sent, without the query; `/` until it is known to be one. */
  path = '/'
  route: Route | undefined
  /** The path's parameters, still percent-encoded. */
  params: PathValues = NO_PARAMS
  query: Query = emptyQuery
  body: JsonObject | undefined
  lossyNumbers: JsonBody['lossyNumbers'] = []
  client: ClientAddress | undefined
  credential = ''
  /** The cached response to the same target; undefined once it is known to be stale. */
  cached: CachedResponse<KeyedRoute> | undefined
  revision: Revision = unknownRevision
  principal: Principal | undefined
  /** The key as it was when the request arrived. */
  arrivedKey: Key | undefined
  /** The client's address, if the key has an allow-list. */
  address: ClientAddress['address']
  /** The partner that the request names. */
  requestedPartner: string | undefined
  /** The scope that the route needs. */
  scope: Scope | undefined
  /** What the route does in place of the operator. */
  selfService: SelfService | undefined
  /** Whether the key may use the route: only then code of the host is called. */
  isGranted = false
  isCredentialRejected = false
  /** Makes the page of a problem, for a person who opens a link. */
  problemPage: ProblemPage | undefined
  /** Set once limits have been enforced. */
  rateLimit: RateLimitFields | undefined
  error: unknown

  constructor(service: Service, request: HttpRequest, host: HostCall | undefined) {
    this.service = service
    this.request = request
    this.host = host
    this.requestId = service.writer.nextRequestId()
    this.startedAt = service.elapsed()
    this.now = service.clock.now(this.startedAt)
  }

  /** The trace id of a valid `traceparent` of version 00 or later (W3C Trace Context §3.2.2). */
  traceId(): string | undefined {
    const [, version, trace, rest] = traceparent.exec(this.request.header('traceparent') ?? '') ?? []
    return version === '00' && rest !== undefined ? undefined : trace
  }
}

/** Neither id may be zero, and only versions after 00 may have further fields. */
const traceparent = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/

/** A request for an endpoint that takes a key, once the key is known. */
export interface AuthenticatedContext extends RequestContext {
  route: KeyedRoute
  principal: Principal
}

/** Reads the query of a request whose path is known. */
export function parseQuery(context: RequestContext): Query {
  if (context.request.target.length === context.path.length) return context.query
  return context.query = readQuery(context.request.target.slice(context.path.length + 1))
}

/** The address of the client, which is determined once for a request. */
export function clientOf(context: RequestContext): ClientAddress {
  return context.client ??= clientAddressOf(context.request, context.service.trustedProxies)
}
