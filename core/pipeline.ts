/**
 * The life of a request, step by step in the contract's order: the first check that fails decides the answer.
 * Nothing here waits unless a store or a body has to be waited for.
 */
import { after } from './after.ts'
import { askedOf, beginCall, type Call, queryOf } from './call.ts'
import type { Freshness } from './cache/freshness.ts'
import type { Clock } from './clock.ts'
import type { KeepReply } from './cache/keep.ts'
import { holdsGood, type Replies } from './cache/replies.ts'
import { accepts } from './http/accept.ts'
import { type JsonObject, readBody } from './http/body.ts'
import { type Client, clientOf } from './http/client-address.ts'
import type { Answer, Exchange } from './http/exchange.ts'
import { readPartner } from './http/parameters.ts'
import { Problem, type ProblemCode } from './http/problem.ts'
import { isPercentEncoded, type Query } from './http/query.ts'
import { sayablePath } from './http/redact.ts'
import type { Representing } from './http/representation.ts'
import type { Authenticator, LookUp } from './keys/authenticate.ts'
import { type Credential, readCredential } from './keys/credential.ts'
import type { Principal } from './keys/principal.ts'
import type { KeyUses } from './keys/uses.ts'
import { createFailures } from './limits/failures.ts'
import type { Limiter } from './limits/limiter.ts'
import type { Policy } from './limits/policies.ts'
import { type Spending, spendQuotas } from './limits/spend.ts'
import type { Journal } from './log.ts'
import { createOpenDoor } from './open.ts'
import { admit, decide, type Grant } from './policy/decide.ts'
import { problemFor, problemOf } from './policy/problems.ts'
import type { MaybePromise, Revision } from './ports.ts'
import type { UsageCounter } from './reports/counter.ts'
import { readInput } from './routes/input.ts'
import { allowedMethods, type HandlerPorts, type KeyedRoute, type Reply, type Route } from './routes/route.ts'
import type { PathTable } from './routes/router.ts'
import type { ServiceNames } from './service-names.ts'
import { VERSION } from './version.ts'

/** What the pipeline works with. */
export interface PipelineParts {
  readonly names: ServiceNames
  readonly paths: PathTable
  readonly trustedProxies: number
  readonly allowBrowsers: boolean
  readonly authfail: Policy | undefined
  elapsed(): number
  readonly clock: Clock
  readonly freshness: Freshness
  readonly authenticator: Authenticator
  readonly limiter: Limiter
  readonly replies: Replies
  readonly keep: KeepReply
  readonly representation: Representing
  readonly uses: KeyUses
  readonly usage: UsageCounter
  readonly journal: Journal
  readonly handlers: HandlerPorts
}

/** The largest target that is read, in bytes; every character of a target is one. */
const maxTargetBytes = 8192

/** @returns The service's handler. It never throws and never rejects. */
export function createPipeline(parts: PipelineParts): (exchange: Exchange) => MaybePromise<Answer> {
  const { authenticator, clock, elapsed, freshness, handlers, limiter, names, replies, representation } =
    parts
  const failures = createFailures(limiter, parts.authfail)
  const keyField = names.keyHeader.toLowerCase()
  const versionField = names.versionHeader.toLowerCase()
  const serveOpen = createOpenDoor(handlers, representation)

  function run(call: Call): MaybePromise<Answer> {
    const route = receive(call)
    if (typeof route === 'string') return representation.allow(route, call.requestId)
    negotiate(call, route)
    if (route.access === 'open') return serveOpen(call, route)
    const credential = present(call)
    const principal = identify(call, credential, call.startedAt)
    // Written out where every request passes: a closure made for `after` is one too many here.
    if (principal instanceof Promise) {
      return principal.then((by) => {
        call.now = clock.now()
        return proceed(call, by, route, credential)
      })
    }
    return proceed(call, principal, route, credential)
  }

  function proceed(call: Call, by: Principal, route: KeyedRoute, credential: string): MaybePromise<Answer> {
    requireAdmission(call, by)
    const spending = spendQuotas(limiter, by.policies, route.limits, by.key.id, call.startedAt)
    if (spending instanceof Promise) {
      return spending.then((spent) => {
        heed(call, by, spent)
        return resume(call, route, credential)
      })
    }
    heed(call, by, spending)
    return route.method === 'GET' ? read(call, by, route, true) : write(call, credential, route)
  }

  /** What had to be waited for may have taken its time: the key is judged as it is now. */
  function resume(call: Call, route: KeyedRoute, credential: string): MaybePromise<Answer> {
    if (route.method === 'POST') return write(call, credential, route)
    call.now = clock.now()
    return after(identify(call, credential, elapsed()), (principal) => read(call, principal, route, false))
  }

  /** Steps 1 and 2: size, route, method. @returns The methods that are allowed, when that is the question. */
  function receive(call: Call): Route | string {
    const { method, target } = call.exchange
    const wanted = method === 'HEAD' ? 'GET' : method
    const kept = wanted === 'GET' ? replies.recall(target) : undefined
    if (kept !== undefined) {
      call.kept = kept
      return found(call, kept.path, kept.slug, kept.route)
    }
    if (target.length > maxTargetBytes) throw new Problem('uri_too_long')
    const end = target.indexOf('?')
    const path = end < 0 ? target : target.slice(0, end)
    if (!isPercentEncoded(path)) throw new Problem('malformed_request')
    if (path.startsWith('/')) call.path = path
    const match = parts.paths.match(path)
    if (match === undefined) throw new Problem('route_not_found')
    for (const route of match.routes) {
      if (route.method === wanted) return found(call, path, match.slug, route)
    }
    const methods = [...allowedMethods(match.routes), 'OPTIONS'].join(', ')
    if (method === 'OPTIONS') return methods
    throw new Problem('method_not_allowed', { allow: methods })
  }

  function found(call: Call, path: string, slug: string, route: Route): Route {
    call.path = path
    call.slug = slug
    call.route = route
    return route
  }

  /** Step 3: version, media type, and nobody's browser where a key is needed. */
  function negotiate(call: Call, route: Route): void {
    const { exchange } = call
    const version = exchange.header(versionField)
    if (version !== undefined && version !== VERSION) throw new Problem('unknown_version')
    const produced = 'mediaType' in route ? route.mediaType : 'application/json'
    if (!accepts(exchange.header('accept'), produced)) throw new Problem('not_acceptable')
    if (route.access === 'open') return
    if (exchange.header('origin') === undefined && exchange.header('sec-fetch-site') === undefined) return
    if (!parts.allowBrowsers) throw new Problem('browser_refused')
    parts.journal.browserAllowed(call)
  }

  /** Steps 4 and 5: an address that fails too often, and the shape of the credential. */
  function present(call: Call): string {
    const { exchange } = call
    const credential = readCredential(exchange.header(keyField), exchange.header('authorization'))
    if (credential.kind === 'missing') throw new Problem('key_missing')
    if (failures.areRecent(call.startedAt)) {
      const retryAfterSeconds = failures.blockedFor(clientFor(call).subject, call.startedAt)
      if (retryAfterSeconds !== undefined && !isKnown(credential, call.now)) block(call, retryAfterSeconds)
    }
    if (credential.kind === 'ambiguous') fail(call, 'ambiguous_credentials')
    return credential.text
  }

  function isKnown(credential: Credential, now: number): boolean {
    return credential.kind === 'presented' && authenticator.isKnown(credential.text, now)
  }

  /** Step 6, first half: whose key it is. */
  function identify(call: Call, credential: string, asOf: number): MaybePromise<Principal> {
    const revision = freshness.confirm(asOf, call.now)
    if (revision instanceof Promise) return revision.then((found) => recognise(call, credential, found))
    return recognise(call, credential, revision)
  }

  function recognise(call: Call, credential: string, revision: Revision): MaybePromise<Principal> {
    call.revision = revision
    const found = authenticator.authenticate(credential, revision)
    if (typeof found === 'function') return lookUp(call, credential, found)
    if (found instanceof Promise) return found.then((principal) => recognised(call, principal))
    return recognised(call, found)
  }

  /** Until it is decided, a look-up counts as a failure of its address: the others wait for those that are under way. */
  function lookUp(call: Call, credential: string, find: LookUp): MaybePromise<Principal> {
    const { subject } = clientFor(call)
    const now = elapsed()
    const retryAfterSeconds = failures.blockedFor(subject, now)
    if (retryAfterSeconds !== undefined) block(call, retryAfterSeconds)
    if (!call.isUndecided) {
      const turn = failures.begin(subject, now)
      call.isUndecided = turn === undefined
      if (turn !== undefined) return turn.then(() => beginAnew(call, credential))
    }
    return after(find(), (principal) => recognised(call, principal))
  }

  /** What was waited for may have decided about this key, too. */
  function beginAnew(call: Call, credential: string): MaybePromise<Principal> {
    call.isUndecided = true
    call.now = clock.now()
    return identify(call, credential, elapsed())
  }

  function recognised(call: Call, principal: Principal | undefined): Principal {
    if (principal === undefined) fail(call, 'key_invalid')
    return call.principal = principal
  }

  /** Step 6, second half, and step 7: whether the key may be used here and now. */
  function requireAdmission(call: Call, principal: Principal): void {
    const address = principal.ranges.length === 0 ? undefined : clientFor(call).address
    const denial = admit({ principal, address, now: call.now })
    if (denial === undefined) {
      if (call.isUndecided) endLookUp(call)
      return
    }
    if (denial.reason === 'address_not_allowed') throw problemOf(denial)
    fail(call, problemFor[denial.reason])
  }

  /** Step 8: every policy that applies to the route has counted the request; the first that is spent refuses. */
  function heed(call: Call, { key }: Principal, { fields, retryAfterSeconds }: Spending): void {
    call.limitFields = fields
    if (retryAfterSeconds !== undefined) throw new Problem('rate_limited', { retryAfterSeconds })
    parts.uses.note(key.id, call.now)
  }

  /** Steps 10 to 15 of a GET. A target that was read before is not read again: it says the same. */
  function read(call: Call, by: Principal, route: KeyedRoute, admitted: boolean): MaybePromise<Answer> {
    const { kept } = call
    if (kept !== undefined && holdsGood(kept, call.revision, call.now)) {
      authorize(call, by, route, admitted, kept.partner)
      return representation.present(kept, askedOf(call), call.limitFields)
    }
    const query = queryOf(call)
    const grant = authorize(call, by, route, admitted, readPartner(query))
    return after(handle(call, route, grant, query, undefined), (reply) => {
      const made = representation.represent(reply, query)
      parts.keep(call, route, grant, made)
      return representation.present(made, askedOf(call), call.limitFields)
    })
  }

  /** Steps 9 to 14 of a POST. */
  function write(call: Call, credential: string, route: KeyedRoute): MaybePromise<Answer> {
    return after(readBody(call.exchange), (body) => {
      // The body may have taken its time: the key is judged as it is now.
      call.now = clock.now()
      return after(identify(call, credential, elapsed()), (principal) => {
        const { partner } = body
        const claim = typeof partner === 'string' ? partner : undefined
        const grant = authorize(call, principal, route, false, claim)
        return after(
          handle(call, route, grant, queryOf(call), body),
          (reply) => representation.tell(reply, route.status ?? 200, askedOf(call), call.limitFields),
        )
      })
    })
  }

  /** Steps 10 and 11: partner, scope, module. @param admitted Whether the key was admitted in this same turn. */
  function authorize(call: Call, by: Principal, route: KeyedRoute, admitted: boolean, claim?: string): Grant {
    const address = by.ranges.length === 0 ? undefined : clientFor(call).address
    const decision = decide({ principal: by, address, claim, scope: route.scope, now: call.now }, admitted)
    if (!decision.allowed) throw problemOf(decision)
    return decision.grant
  }

  /** Steps 12 to 14: what the request says is judged, and answered. */
  function handle(
    call: Call,
    route: KeyedRoute,
    grant: Grant,
    query: Query,
    body: JsonObject | undefined,
  ): MaybePromise<Reply> {
    const { exchange, slug } = call
    const said = { exchange, slug, query, body, client: () => clientFor(call).subject }
    return after(readInput(route, said, grant, handlers), (input) => route.handle(input, grant, handlers))
  }

  /** A refused credential, counted against the address it came from. */
  function fail(call: Call, code: ProblemCode): never {
    call.credentialRefused = true
    const counted = failures.count(clientFor(call).subject, elapsed())
    if (typeof counted === 'number') block(call, counted)
    call.counted = counted
    throw new Problem(code)
  }

  /** A credential that is not heard because its address has failed too often. */
  function block(call: Call, retryAfterSeconds: number): never {
    call.credentialRefused = true
    throw new Problem('rate_limited', { retryAfterSeconds })
  }

  function endLookUp(call: Call): void {
    call.isUndecided = false
    const { failure } = call
    const isSilent = failure instanceof Problem && failure.code === 'store_unavailable'
    failures.end(clientFor(call).subject, elapsed(), isSilent ? failure : undefined)
  }

  function clientFor(call: Call): Client {
    return call.client ??= clientOf(call.exchange, parts.trustedProxies)
  }

  function refuse(call: Call, error: unknown): Answer {
    const problem = error instanceof Problem ? error : new Problem('internal')
    call.failure = error
    return representation.problem(problem, askedOf(call), sayablePath(call.path), call.limitFields)
  }

  /** A refusal is told once it is counted: of failures at once, those beyond the quota are told that instead. */
  function conclude(call: Call, error: unknown): MaybePromise<Answer> {
    if (call.counted === undefined) return finish(call, refuse(call, error))
    return call.counted.then((retryAfterSeconds) => {
      const problem = retryAfterSeconds === undefined
        ? error
        : new Problem('rate_limited', { retryAfterSeconds })
      return finish(call, refuse(call, problem))
    })
  }

  /** What a live key's request came to is counted and logged, once. */
  function finish(call: Call, answer: Answer): Answer {
    const { principal, route } = call
    if (call.isUndecided) endLookUp(call)
    if (route !== undefined && principal?.key.environment === 'live') {
      parts.usage.count(principal.partner.slug, route.name, answer.status, call.now)
    }
    return parts.journal.answered(call, answer)
  }

  return (exchange) => {
    const startedAt = elapsed()
    const call = beginCall(exchange, representation.nextRequestId(), startedAt, clock.now(startedAt))
    try {
      const answer = run(call)
      if (!(answer instanceof Promise)) return finish(call, answer)
      return answer.then((done) => finish(call, done), (error: unknown) => conclude(call, error))
    } catch (error) {
      return conclude(call, error)
    }
  }
}
