/**
 * The life of a request, step by step in the contract's order: the first check that fails decides the answer.
 * Nothing here waits unless a store or a body has to be waited for.
 */
import type { CacheWriter } from './cache-writer.ts'
import { isFresh, type ResponseCache } from './cache/response-cache.ts'
import type { RevisionCache } from './cache/revision-cache.ts'
import { type JsonObject, readBody } from './http/body.ts'
import type { ClientAddress, ServiceNames } from './http/headers.ts'
import { accepts, API_VERSION, clientAddressOf } from './http/headers.ts'
import type { HandlerResult, HttpRequest, HttpResponse } from './http/message.ts'
import { Problem, type ProblemCode } from './http/problem.ts'
import { isPercentEncoded, type Query, readPartner } from './http/query.ts'
import { redactPath } from './http/redact.ts'
import type { ResponseWriter } from './http/response.ts'
import type { Authenticator, KeyLookup } from './keys/authenticate.ts'
import { type Credential, readCredential } from './keys/credential.ts'
import type { LastUsedRecorder } from './keys/lifecycle.ts'
import type { Principal } from './keys/principal.ts'
import { andThen, type MaybePromise } from './lib/promise.ts'
import type { Clock } from './lib/time.ts'
import { createFailedAuthentications } from './limits/failed-authentications.ts'
import { consumeQuotas, type Limiter, type RateLimitResult } from './limits/limiter.ts'
import type { Policy } from './limits/policies.ts'
import type { RequestLogger } from './log.ts'
import { admit, decide, type Grant, problemCodeByReason, problemForDenial } from './policy/decide.ts'
import type { Revision } from './ports/facts.ts'
import { createPublicHandler } from './public-handler.ts'
import type { UsageCounter } from './reports/usage-counter.ts'
import { createRequestContext, queryOf, type RequestContext, requestMetaOf } from './request-context.ts'
import type { HandlerContext } from './routes/context.ts'
import { readInput } from './routes/input.ts'
import { allowedMethods, type KeyedRoute, type Route } from './routes/route.ts'
import type { RouteTable } from './routes/router.ts'

export interface PipelineParts {
  readonly names: ServiceNames
  readonly paths: RouteTable
  readonly trustedProxies: number
  readonly allowBrowsers: boolean
  readonly authfail: Policy | undefined
  elapsed(): number
  readonly clock: Clock
  readonly revisionCache: RevisionCache
  readonly authenticator: Authenticator
  readonly limiter: Limiter
  readonly responseCache: ResponseCache
  readonly cacheWriter: CacheWriter
  readonly writer: ResponseWriter
  readonly uses: LastUsedRecorder
  readonly usage: UsageCounter
  readonly logger: RequestLogger
  readonly handlers: HandlerContext
}

/** The largest target that is read, in bytes; every character of a target is one. */
const maxTargetBytes = 8192

/** @returns The service's handler. It never throws and never rejects. */
export function createPipeline(parts: PipelineParts): (exchange: HttpRequest) => MaybePromise<HttpResponse> {
  const { authenticator, clock, elapsed, revisionCache, handlers, limiter, names, responseCache, writer } =
    parts
  const failures = createFailedAuthentications(limiter, parts.authfail)
  const keyField = names.keyHeader.toLowerCase()
  const versionField = names.versionHeader.toLowerCase()
  const handlePublic = createPublicHandler(handlers, writer)

  function run(context: RequestContext): MaybePromise<HttpResponse> {
    const route = matchRoute(context)
    if (typeof route === 'string') return writer.respondOptions(route, context.requestId)
    negotiate(context, route)
    if (route.access === 'open') return handlePublic(context, route)
    const credential = requireCredential(context)
    const principal = authenticate(context, credential, context.startedAt)
    // Written out where every request passes: a closure made for `after` is one too many here.
    if (principal instanceof Promise) {
      return principal.then((by) => {
        context.now = clock.now()
        return afterAuthentication(context, by, route, credential)
      })
    }
    return afterAuthentication(context, principal, route, credential)
  }

  function afterAuthentication(
    context: RequestContext,
    by: Principal,
    route: KeyedRoute,
    credential: string,
  ): MaybePromise<HttpResponse> {
    checkKeyStatus(context, by)
    const spending = consumeQuotas(limiter, by.policies, route.limits, by.key.id, context.startedAt)
    if (spending instanceof Promise) {
      return spending.then((spent) => {
        enforceLimits(context, by, spent)
        return reauthenticate(context, route, credential)
      })
    }
    enforceLimits(context, by, spending)
    return route.method === 'GET'
      ? handleGet(context, by, route, true)
      : handlePost(context, credential, route)
  }

  /** What had to be waited for may have taken its time: the key is judged as it is now. */
  function reauthenticate(
    context: RequestContext,
    route: KeyedRoute,
    credential: string,
  ): MaybePromise<HttpResponse> {
    if (route.method === 'POST') return handlePost(context, credential, route)
    context.now = clock.now()
    return andThen(
      authenticate(context, credential, elapsed()),
      (principal) => handleGet(context, principal, route, false),
    )
  }

  /** Steps 1 and 2: size, route, method. @returns The methods that are allowed, when that is the question. */
  function matchRoute(context: RequestContext): Route | string {
    const { method, target } = context.request
    const routeMethod = method === 'HEAD' ? 'GET' : method
    const cached = routeMethod === 'GET' ? responseCache.lookup(target) : undefined
    if (cached !== undefined) {
      context.cached = cached
      return setRoute(context, cached.path, cached.slug, cached.route)
    }
    if (target.length > maxTargetBytes) throw new Problem('uri_too_long')
    const end = target.indexOf('?')
    const path = end < 0 ? target : target.slice(0, end)
    if (!isPercentEncoded(path)) throw new Problem('malformed_request')
    if (path.startsWith('/')) context.path = path
    const match = parts.paths.match(path)
    if (match === undefined) throw new Problem('route_not_found')
    for (const route of match.routes) {
      if (route.method === routeMethod) return setRoute(context, path, match.slug, route)
    }
    const methods = [...allowedMethods(match.routes), 'OPTIONS'].join(', ')
    if (method === 'OPTIONS') return methods
    throw new Problem('method_not_allowed', { allow: methods })
  }

  function setRoute(context: RequestContext, path: string, slug: string, route: Route): Route {
    context.path = path
    context.slug = slug
    context.route = route
    return route
  }

  /** Step 3: version, media type, and nobody's browser where a key is needed. */
  function negotiate(context: RequestContext, route: Route): void {
    const { request } = context
    const version = request.header(versionField)
    if (version !== undefined && version !== API_VERSION) throw new Problem('unknown_version')
    const produced = 'mediaType' in route ? route.mediaType : 'application/json'
    if (!accepts(request.header('accept'), produced)) throw new Problem('not_acceptable')
    if (route.access === 'open') return
    if (request.header('origin') === undefined && request.header('sec-fetch-site') === undefined) return
    if (!parts.allowBrowsers) throw new Problem('browser_refused')
    parts.logger.browserAllowed(context)
  }

  /** Steps 4 and 5: an address that fails too often, and the shape of the credential. */
  function requireCredential(context: RequestContext): string {
    const { request } = context
    const credential = readCredential(request.header(keyField), request.header('authorization'))
    if (credential.kind === 'missing') throw new Problem('key_missing')
    if (failures.hasRecent(context.startedAt)) {
      const retryAfterSeconds = failures.blockedSeconds(clientFor(context).subject, context.startedAt)
      if (retryAfterSeconds !== undefined && !isKnownGood(credential, context.now)) {
        rejectRateLimited(context, retryAfterSeconds)
      }
    }
    if (credential.kind === 'ambiguous') rejectCredential(context, 'ambiguous_credentials')
    return credential.text
  }

  function isKnownGood(credential: Credential, now: number): boolean {
    return credential.kind === 'presented' && authenticator.isKnown(credential.text, now)
  }

  /** Step 6, first half: whose key it is. */
  function authenticate(context: RequestContext, credential: string, asOf: number): MaybePromise<Principal> {
    const revision = revisionCache.get(asOf, context.now)
    if (revision instanceof Promise) {
      return revision.then((found) => resolvePrincipal(context, credential, found))
    }
    return resolvePrincipal(context, credential, revision)
  }

  function resolvePrincipal(
    context: RequestContext,
    credential: string,
    revision: Revision,
  ): MaybePromise<Principal> {
    context.revision = revision
    const found = authenticator.authenticate(credential, revision)
    if (typeof found === 'function') return lookUpKey(context, credential, found)
    if (found instanceof Promise) return found.then((principal) => setPrincipal(context, principal))
    return setPrincipal(context, found)
  }

  /** Until it is decided, a look-up counts as a failure of its address: the others wait for those that are under way. */
  function lookUpKey(context: RequestContext, credential: string, find: KeyLookup): MaybePromise<Principal> {
    const { subject } = clientFor(context)
    const now = elapsed()
    const retryAfterSeconds = failures.blockedSeconds(subject, now)
    if (retryAfterSeconds !== undefined) rejectRateLimited(context, retryAfterSeconds)
    if (!context.isLookUpPending) {
      const turn = failures.beginLookup(subject, now)
      context.isLookUpPending = turn === undefined
      if (turn !== undefined) return turn.then(() => retryAuthentication(context, credential))
    }
    return andThen(find(), (principal) => setPrincipal(context, principal))
  }

  /** What was waited for may have decided about this key, too. */
  function retryAuthentication(context: RequestContext, credential: string): MaybePromise<Principal> {
    context.isLookUpPending = true
    context.now = clock.now()
    return authenticate(context, credential, elapsed())
  }

  function setPrincipal(context: RequestContext, principal: Principal | undefined): Principal {
    if (principal === undefined) rejectCredential(context, 'key_invalid')
    return context.principal = principal
  }

  /** Step 6, second half, and step 7: whether the key may be used here and now. */
  function checkKeyStatus(context: RequestContext, principal: Principal): void {
    const address = principal.allowedRanges.length === 0 ? undefined : clientFor(context).address
    const denial = admit({ principal, address, now: context.now })
    if (denial === undefined) {
      if (context.isLookUpPending) endLookUp(context)
      return
    }
    if (denial.reason === 'address_not_allowed') throw problemForDenial(denial)
    rejectCredential(context, problemCodeByReason[denial.reason])
  }

  /** Step 8: every policy that applies to the route has counted the request; the first that is spent refuses. */
  function enforceLimits(
    context: RequestContext,
    { key }: Principal,
    { fields, retryAfterSeconds }: RateLimitResult,
  ): void {
    context.rateLimitHeaders = fields
    if (retryAfterSeconds !== undefined) throw new Problem('rate_limited', { retryAfterSeconds })
    parts.uses.record(key.id, context.now)
  }

  /** Steps 10 to 15 of a GET. A target that was read before is not read again: it says the same. */
  function handleGet(
    context: RequestContext,
    by: Principal,
    route: KeyedRoute,
    isAdmitted: boolean,
  ): MaybePromise<HttpResponse> {
    const { cached } = context
    if (cached !== undefined && isFresh(cached, context.revision, context.now)) {
      authorize(context, by, route, isAdmitted, cached.partner)
      return writer.respond(cached, requestMetaOf(context), context.rateLimitHeaders)
    }
    const query = queryOf(context)
    const grant = authorize(context, by, route, isAdmitted, readPartner(query))
    return andThen(validateAndHandle(context, route, grant, query, undefined), (reply) => {
      const made = writer.toCachedBody(reply, query)
      parts.cacheWriter(context, route, grant, made)
      return writer.respond(made, requestMetaOf(context), context.rateLimitHeaders)
    })
  }

  /** Steps 9 to 14 of a POST. */
  function handlePost(
    context: RequestContext,
    credential: string,
    route: KeyedRoute,
  ): MaybePromise<HttpResponse> {
    return andThen(readBody(context.request), (body) => {
      // The body may have taken its time: the key is judged as it is now.
      context.now = clock.now()
      return andThen(authenticate(context, credential, elapsed()), (principal) => {
        const { partner } = body
        const requestedPartner = typeof partner === 'string' ? partner : undefined
        const grant = authorize(context, principal, route, false, requestedPartner)
        return andThen(
          validateAndHandle(context, route, grant, queryOf(context), body),
          (reply) =>
            writer.respondUncached(
              reply,
              route.status ?? 200,
              requestMetaOf(context),
              context.rateLimitHeaders,
            ),
        )
      })
    })
  }

  /** Steps 10 and 11: partner, scope, module. @param isAdmitted Whether the key was admitted in this same turn. */
  function authorize(
    context: RequestContext,
    by: Principal,
    route: KeyedRoute,
    isAdmitted: boolean,
    requestedPartner?: string,
  ): Grant {
    const address = by.allowedRanges.length === 0 ? undefined : clientFor(context).address
    const decision = decide({
      principal: by,
      address,
      requestedPartner,
      scope: route.scope,
      now: context.now,
    }, isAdmitted)
    if (!decision.allowed) throw problemForDenial(decision)
    return decision.grant
  }

  /** Steps 12 to 14: what the request says is judged, and answered. */
  function validateAndHandle(
    call: RequestContext,
    route: KeyedRoute,
    grant: Grant,
    query: Query,
    body: JsonObject | undefined,
  ): MaybePromise<HandlerResult> {
    const { request, slug } = call
    const rawInput = { exchange: request, slug, query, body, client: () => clientFor(call).subject }
    return andThen(
      readInput(route, rawInput, grant, handlers),
      (input) => route.handle(input, grant, handlers),
    )
  }

  /** A refused credential, counted against the address it came from. */
  function rejectCredential(context: RequestContext, code: ProblemCode): never {
    context.credentialRefused = true
    const counted = failures.count(clientFor(context).subject, elapsed())
    if (typeof counted === 'number') rejectRateLimited(context, counted)
    context.failureCount = counted
    throw new Problem(code)
  }

  /** A credential that is not heard because its address has failed too often. */
  function rejectRateLimited(context: RequestContext, retryAfterSeconds: number): never {
    context.credentialRefused = true
    throw new Problem('rate_limited', { retryAfterSeconds })
  }

  function endLookUp(context: RequestContext): void {
    context.isLookUpPending = false
    const { error: failure } = context
    const isSilent = failure instanceof Problem && failure.code === 'store_unavailable'
    failures.endLookup(clientFor(context).subject, elapsed(), isSilent ? failure : undefined)
  }

  function clientFor(context: RequestContext): ClientAddress {
    return context.client ??= clientAddressOf(context.request, parts.trustedProxies)
  }

  function respondProblem(context: RequestContext, error: unknown): HttpResponse {
    const problem = error instanceof Problem ? error : new Problem('internal')
    context.error = error
    const { path, rateLimitHeaders } = context
    return writer.respondProblem(problem, requestMetaOf(context), redactPath(path), rateLimitHeaders)
  }

  /** Answers once the failure is counted: parallel failures beyond the quota get 429. */
  function fail(context: RequestContext, error: unknown): MaybePromise<HttpResponse> {
    if (context.failureCount === undefined) return finish(context, respondProblem(context, error))
    return context.failureCount.then((retryAfterSeconds) => {
      const isLimited = retryAfterSeconds !== undefined
      const problem = isLimited ? new Problem('rate_limited', { retryAfterSeconds }) : error
      return finish(context, respondProblem(context, problem))
    })
  }

  /** What a live key's request came to is counted and logged, once. */
  function finish(context: RequestContext, answer: HttpResponse): HttpResponse {
    const { principal, route } = context
    if (context.isLookUpPending) endLookUp(context)
    if (route !== undefined && principal?.key.environment === 'live') {
      parts.usage.count(principal.partner.slug, route.name, answer.status, context.now)
    }
    return parts.logger.requestCompleted(context, answer)
  }

  return (exchange) => {
    const startedAt = elapsed()
    const call = createRequestContext(exchange, writer.nextRequestId(), startedAt, clock.now(startedAt))
    try {
      const answer = run(call)
      if (!(answer instanceof Promise)) return finish(call, answer)
      return answer.then((done) => finish(call, done), (error: unknown) => fail(call, error))
    } catch (error) {
      return fail(call, error)
    }
  }
}
