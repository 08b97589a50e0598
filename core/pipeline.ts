/**
 * The life of a request: one function per step of the contract (section 2), in its order. The first check that fails
 * decides the response. Nothing is asynchronous unless a store or a body has to be awaited.
 */
import {
  authenticate,
  checkKeyStatus,
  createRecheck,
  readmit,
  requireCredential,
} from './authenticate-request.ts'
import { isFresh } from './cache/response-cache.ts'
import { type JsonBody, readBody } from './http/body.ts'
import { accepts } from './http/headers.ts'
import type { CachedBody, HandlerResult, HttpRequest, HttpResponse } from './http/message.ts'
import { Problem, type ProblemCode } from './http/problem.ts'
import { isPercentEncoded, readPartner } from './http/query.ts'
import { redactPath } from './http/redact.ts'
import { respondCached } from './http/response.ts'
import { andThen, type MaybePromise } from './lib/promise.ts'
import { consumeQuotas, type RateLimitResult } from './limits/limiter.ts'
import { registeredMethod } from './log.ts'
import { authorize, type Grant, problemForDenial } from './policy/decide.ts'
import { notifyCompleted } from './ports/observer.ts'
import { createPublicHandler, type PublicHandler } from './public-endpoints.ts'
import { describeProblem } from './reports/problem-log.ts'
import {
  type AuthenticatedContext,
  clientOf,
  type HostCall,
  parseQuery,
  RequestContext,
  type Service,
} from './request-context.ts'
import { readInput } from './routes/read-input.ts'
import { mediaTypesOf, NO_PARAMS, type PathValues, type Route } from './routes/route.ts'
import { ROUTES, selectRoute, SERVER_METHODS } from './routes/router.ts'
import { API_VERSION, takesBody } from './model.ts'

/**
 * Handles a request: one of the service's routes or, with `host`, one of the host's. Never throws and never rejects.
 */
export type Pipeline = (request: HttpRequest, host?: HostCall) => MaybePromise<HttpResponse>

export function createPipeline(service: Service): Pipeline {
  const handlePublic = createPublicHandler(service)
  const { observer } = service
  return observer?.request === undefined ? handleRequest : handleObserved

  /** Handles a request once, whether the observer returns, throws or rejects. */
  function handleObserved(request: HttpRequest, host?: HostCall): MaybePromise<HttpResponse> {
    let response: MaybePromise<HttpResponse> | undefined
    const handleOnce = () => response ??= handleRequest(request, host)
    try {
      const observed = observer!.request!(request, handleOnce)
      return observed instanceof Promise ? observed.catch(handleOnce) : observed
    } catch {
      return handleOnce()
    }
  }

  function handleRequest(request: HttpRequest, host?: HostCall): MaybePromise<HttpResponse> {
    const context = new RequestContext(service, request, host)
    try {
      const response = handle(context, handlePublic)
      return response instanceof Promise ? finishLater(context, response) : finish(context, response)
    } catch (error) {
      try {
        return fail(context, error)
      } catch {
        // The request throws whatever is read of it.
        context.request = unreadableRequest
        return fail(context, error)
      }
    }
  }
}

const unreadableRequest: HttpRequest = {
  method: 'GET',
  target: '/',
  header: () => undefined,
  body: () => new Uint8Array(),
  address: undefined,
}

function finishLater(context: RequestContext, response: Promise<HttpResponse>): Promise<HttpResponse> {
  return response.then(
    (resolved) => finish(context, resolved),
    (error: unknown) => fail(context, error),
  ).catch((error: unknown) => {
    // What was thrown cannot be answered or logged: a host's error may be any value.
    return fail(context, new Error('A value that cannot be reported was thrown.', { cause: typeof error }))
  })
}

function handle(
  context: RequestContext,
  handlePublic: PublicHandler,
): MaybePromise<HttpResponse> {
  const route = matchRoute(context)
  if (typeof route === 'string') return context.service.writer.respondOptions(route, context.requestId)
  negotiate(context, route)
  if (route.access === 'open') return handlePublic(context, route)
  const refused = requireCredential(context)
  if (refused !== undefined) return refused
  const authenticated = authenticate(context, context.startedAt)
  if (!(authenticated instanceof Promise)) return afterAuthentication(authenticated)
  return authenticated.then((context) => {
    // The key may have expired during the wait.
    context.now = context.service.clock.now()
    return afterAuthentication(context)
  })
}

function afterAuthentication(context: AuthenticatedContext): MaybePromise<HttpResponse> {
  const refused = checkKeyStatus(context)
  if (refused !== undefined) return refused
  const { service, principal, route, startedAt, now } = context
  const result = consumeQuotas(service, principal, route, startedAt, now)
  if (!(result instanceof Promise)) {
    enforceLimits(context, result)
    return handleAdmitted(context)
  }
  return result.then((resolved) => {
    enforceLimits(context, resolved)
    return andThen(readmit(context), handleAdmitted)
  })
}

function handleAdmitted(context: AuthenticatedContext): MaybePromise<HttpResponse> {
  return takesBody(context.route.method) ? handleWithBody(context) : handleWithoutBody(context)
}

/** The largest target, in bytes. */
const maxTargetBytes = 8192

/** Steps 1 and 2: size, route, method. @returns For OPTIONS, the allowed methods. */
function matchRoute(context: RequestContext): Route | string {
  const { host, request: { method, target }, service: { responseCache, routes } } = context
  if (host === undefined && (method === 'GET' || method === 'HEAD')) {
    const cached = context.cached = responseCache.lookup(target)
    if (cached !== undefined) return setRoute(context, cached.path, cached.params, cached.route)
  }
  if (target === '*' && method === 'OPTIONS') return SERVER_METHODS
  if (target.length > maxTargetBytes) throw new Problem('uri_too_long')
  const end = target.indexOf('?')
  const path = end < 0 ? target : target.slice(0, end)
  // A target has no fragment (RFC 9112 §3.2), and CONNECT has no path (§3.2.3).
  if (target.includes('#') || method === 'CONNECT' || !isPercentEncoded(path)) {
    throw new Problem('malformed_request')
  }
  if (path.startsWith('/')) context.path = path
  const match = host === undefined ? routes.match(path) : { routes: [host.route], params: NO_PARAMS }
  if (match === undefined) throw new Problem('route_not_found')
  // A secret, if incomplete.
  if (match.routes[0]!.endsWithSecret) context.path = path.replace(/[^/]+$/, '…')
  const route = selectRoute(match.routes, method)
  return typeof route === 'string' ? route : setRoute(context, context.path, match.params, route)
}

function setRoute(context: RequestContext, path: string, params: PathValues, route: Route): Route {
  context.path = path
  context.params = params
  context.route = route
  return route
}

/** Step 3: the version; the media type, which the host's own routes decide; and no browser where a key is needed. */
function negotiate(context: RequestContext, route: Route): void {
  const { request } = context
  const version = request.header(context.service.names.versionHeaderLowerCase)
  if (version !== undefined && version !== API_VERSION) throw new Problem('unknown_version')
  const accept = request.header('accept')
  const isAcceptable = context.host !== undefined ||
    mediaTypesOf(route).some((mediaType) => accepts(accept, mediaType))
  if (!isAcceptable) throw new Problem('not_acceptable')
  if (route.access === 'open') return
  if (request.header('origin') === undefined && request.header('sec-fetch-site') === undefined) return
  if (!context.service.allowBrowsers) throw new Problem('browser_refused')
  context.service.logger.browserAllowed(context)
}

/** Step 8: the rate limits of the key, all policies that apply to the route. */
function enforceLimits(context: AuthenticatedContext, result: RateLimitResult | undefined): void {
  context.rateLimit = result
  const retryAfterSeconds = result?.retryAfterSeconds
  if (retryAfterSeconds !== undefined) throw new Problem('rate_limited', { retryAfterSeconds })
  context.service.lastUsed.record(context.principal.key, context.now)
}

/**
 * Steps 10 to 15 of a GET, HEAD or DELETE. A cached response knows what its target says: the
 * target is not parsed again.
 */
function handleWithoutBody(context: AuthenticatedContext): MaybePromise<HttpResponse> {
  const { cached, host, route } = context
  if (host !== undefined) return callHost(context, host, readPartner(parseQuery(context)))
  if (route.revision !== undefined) return handleOwnGet(context)
  if (cached === undefined || !isFresh(cached, context.revision, context.now)) {
    return handleUncached(context)
  }
  requireAccess(context, cached.partner)
  return respondCached(cached, context)
}

/** Steps 10 to 15 of a GET of the host's own: its revision is asked for once the request may have an answer. */
function handleOwnGet(context: AuthenticatedContext): MaybePromise<HttpResponse> {
  requireAccess(context, context.cached?.partner ?? readPartner(parseQuery(context)))
  const revision = context.route.revision!(context.service.handlerContext)
  if (!(revision instanceof Promise)) return respondOwn(context, revision)
  return revision.then((text) => andThen(readmit(context), (again) => respondOwn(again, text)))
}

function respondOwn(context: AuthenticatedContext, revision: string): MaybePromise<HttpResponse> {
  const { cached, principal } = context
  // What test keys get may differ.
  const content = `${principal.key.environment} ${revision}`
  context.revision = { ...context.revision, content }
  if (cached === undefined || !isFresh(cached, context.revision, context.now)) return handleUncached(context)
  requireAccess(context, cached.partner)
  return respondCached(cached, context)
}

function handleUncached(context: AuthenticatedContext): MaybePromise<HttpResponse> {
  const { writer } = context.service
  context.cached = undefined
  const query = parseQuery(context)
  const grant = requireAccess(context, readPartner(query))
  return andThen(validateAndHandle(context, grant), (result) => {
    const body = writer.toCachedBody(result, context.path, query)
    cacheResponse(context, grant, body)
    return respondCached(body, context)
  })
}

function cacheResponse(
  { service, request, path, params, route, revision: { content, facts } }: AuthenticatedContext,
  { partner, now }: Grant,
  body: CachedBody,
): void {
  const isOwn = route.revision !== undefined
  if (route.cacheBy === 'none' && !isOwn) return
  service.responseCache.store(request.target, now, {
    ...body,
    route,
    path,
    params,
    partner: partner.slug,
    content,
    facts: isOwn || route.cacheBy === 'content+partner' ? facts : undefined,
    expiresAt: isOwn ? Infinity : undefined,
  })
}

/** Steps 9 to 14 of a POST, PUT or PATCH. */
function handleWithBody(context: AuthenticatedContext): MaybePromise<HttpResponse> {
  const body = readBody(context.request)
  if (!(body instanceof Promise)) return handleBody(context, body)
  return body.then((read) => andThen(readmit(context), (again) => handleBody(again, read)))
}

function handleBody(
  context: AuthenticatedContext,
  { value: body, lossyNumbers }: JsonBody,
): MaybePromise<HttpResponse> {
  context.body = body
  context.lossyNumbers = lossyNumbers
  const partner = typeof body['partner'] === 'string' ? body['partner'] : undefined
  if (context.host !== undefined) return callHost(context, context.host, partner)
  const grant = requireAccess(context, partner)
  // A POST has no parameters: step 12 refuses those of its query.
  parseQuery(context)
  return andThen(
    validateAndHandle(context, grant),
    (result) => context.service.writer.respondUncached(result, context.route.status ?? 200, context),
  )
}

/** Steps 10 and 11, and the host's handler in place of the others. */
function callHost(context: AuthenticatedContext, host: HostCall, partner: string | undefined) {
  const grant = requireAccess(context, partner)
  return host.respond(grant, context.service.writer.hostHeaders(context), context.body)
}

/** Steps 10 and 11: partner, scope and module. */
function requireAccess(context: AuthenticatedContext, requestedPartner: string | undefined): Grant {
  context.requestedPartner = requestedPartner
  context.scope = context.route.scope
  context.selfService = context.route.selfService
  const denial = authorize(context)
  context.isGranted = denial === undefined
  if (denial !== undefined) throw problemForDenial(denial)
  const { principal, principal: { partner, key }, now, arrivedKey, requestId, request } = context
  const recheck = context.selfService && createRecheck(context)
  return { partner, key, principal, now, arrivedKey, recheck, requestId, request }
}

/** Steps 12 to 14: parameters or body, idempotency, and the resource itself. */
function validateAndHandle(context: AuthenticatedContext, grant: Grant): MaybePromise<HandlerResult> {
  const { failures, handlerContext, trustedProxies } = context.service
  // Bun asks the system for each address.
  const isAny = () =>
    trustedProxies === 0 && context.request.hasAddress && failures.hasNone(context.startedAt)
  const client = () => isAny() ? '' : clientOf(context).subject
  const input = readInput(context, grant, handlerContext, client)
  if (!(input instanceof Promise)) return context.route.handle(input, grant, handlerContext)
  return input.then((read) =>
    andThen(readmit(context), (again) => {
      return context.route.handle(read, requireAccess(again, context.requestedPartner), handlerContext)
    })
  )
}

/** Responds with a problem. */
function fail(context: RequestContext, error: unknown): HttpResponse {
  context.error = error
  const { service, path, problemPage } = context
  const problem = error instanceof Problem ? error : new Problem('internal')
  return finish(context, service.writer.respondProblem(problem, context, redactPath(path), problemPage))
}

/** Counts the request of a key, and logs it. */
function finish(context: RequestContext, response: HttpResponse): HttpResponse {
  const { principal, route } = context
  const { usage, logger, observer } = context.service
  if (route !== undefined && principal !== undefined) {
    usage.count(principal.key, route.name, response.status, context.now)
    if (context.error !== undefined) {
      const isPrivate = context.isGranted && !ROUTES.includes(route)
      const describe = () => describeProblem(context, principal, response.status, isPrivate)
      usage.recordProblem(principal.key, context.now, describe)
    }
  }
  logger.requestCompleted(context, response.status)
  if (observer?.requestCompleted !== undefined) observe(context, response.status)
  return response
}

function observe(context: RequestContext, status: number): void {
  const { request, requestId, route, principal, startedAt } = context
  const { observer, elapsed, routes } = context.service
  notifyCompleted(observer!, {
    request,
    requestId,
    method: registeredMethod(request.method),
    route: route && routes.endpointOf(route),
    status,
    code: problemCode(context.error),
    durationMs: elapsed() - startedAt,
    partner: principal?.partner.slug,
    responseCache: responseCacheUse(context),
  })
}

/** @returns `undefined` for a request without an error. */
function problemCode(error: unknown): ProblemCode | undefined {
  if (error === undefined) return undefined
  return error instanceof Problem ? error.code : 'internal'
}

/** @returns `undefined` for a response that is never cached. */
function responseCacheUse({ error, route, cached }: RequestContext): 'hit' | 'miss' | undefined {
  if (error !== undefined || route?.access !== 'key' || route.cacheBy === 'none') return undefined
  return cached === undefined ? 'miss' : 'hit'
}
