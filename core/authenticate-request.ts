/** Steps 4 to 7 of a request: whose key it carries, and whether the key may be used. */
import type { ServiceNames } from './http/headers.ts'
import { Problem, type ProblemCode } from './http/problem.ts'
import { containsKey } from './http/redact.ts'
import { ambiguous, type KeyLookup, readCredential } from './keys/authenticator.ts'
import { preparePrincipal, type Principal } from './keys/principal.ts'
import { andThen, type MaybePromise } from './lib/promise.ts'
import { admit, authorize, type Grant, problemForDenial } from './policy/decide.ts'
import type { Revision } from './ports/facts.ts'
import { type AuthenticatedContext, clientOf, parseQuery, type RequestContext } from './request-context.ts'

/** Steps 4 and 5: the failed-authentication limit of the address, and the shape of the credential. */
export function requireCredential(context: RequestContext): void {
  const { request, startedAt, now } = context
  const { names, failures, authenticator } = context.service
  const credential = readCredential(
    request.header(names.keyHeaderLowerCase),
    request.header('authorization'),
  )
  if (credential === undefined) throw missingKey(names, context)
  if (failures.hasRecent(startedAt)) {
    const retryAfterSeconds = failures.blockedSeconds(clientOf(context).subject, startedAt)
    const isKnown = credential !== ambiguous && authenticator.isKnown(credential, now)
    if (retryAfterSeconds !== undefined && !isKnown) rejectBlocked(context, retryAfterSeconds)
  }
  if (credential === ambiguous) rejectCredential(context, 'ambiguous_credentials')
  context.credential = credential
}

/** Says where the key belongs to a client that sends one elsewhere. */
function missingKey({ keyHeader }: ServiceNames, context: RequestContext): Problem {
  const { request } = context
  const isInUrl = parseQuery(context).values.entries()
    .some(([name, values]) => /(?:key|token)$/i.test(name) || [name, ...values].some(containsKey))
  const misplaced = isInUrl
    ? 'A key in the URL is not read, and is in logs now: have it replaced.'
    : request.header('x-api-key')
    ? 'A key in X-API-Key is not read.'
    : request.header('authorization')
    ? 'A key in Authorization is read after the scheme Bearer only.'
    : undefined
  if (misplaced === undefined) return new Problem('key_missing')
  const detail = `${misplaced} Send the key in ${keyHeader}, or as "Authorization: Bearer KEY".`
  return new Problem('key_missing', { detail })
}

/**
 * Step 6: the principal that holds the key.
 *
 * @param asOf The instant, on the monotonic clock, at which the facts must be current.
 */
export function authenticate(context: RequestContext, asOf: number): MaybePromise<AuthenticatedContext> {
  const revision = context.service.revisionCache.get(asOf, context.service.clock.date())
  return andThen(revision, (found) => resolvePrincipal(context, found))
}

function reauthenticate(context: RequestContext): MaybePromise<AuthenticatedContext> {
  context.now = context.service.clock.now()
  return authenticate(context, context.service.elapsed())
}

function resolvePrincipal(context: RequestContext, revision: Revision): MaybePromise<AuthenticatedContext> {
  context.revision = revision
  const found = context.service.authenticator.authenticate(context.credential, revision)
  if (typeof found === 'function') return lookUpKey(context, found)
  return andThen(found, (principal) => setPrincipal(context, principal))
}

function lookUpKey(context: RequestContext, find: KeyLookup): MaybePromise<AuthenticatedContext> {
  const turn = beginLookUp(context)
  if (turn !== undefined) return turn.then(() => reauthenticate(context))
  return andThen(find(), (principal) => setPrincipal(context, principal))
}

/** A pending look-up counts as a failure of its address; over the limit, further look-ups wait for it to end. */
export function beginLookUp(context: RequestContext): Promise<void> | undefined {
  const { failures, elapsed } = context.service
  const now = elapsed()
  requireUnblocked(context, now)
  if (context.isLookUpPending) return undefined
  const turn = failures.beginLookup(clientOf(context).subject, now)
  context.isLookUpPending = turn === undefined
  return turn?.then(() => void (context.isLookUpPending = true))
}

function setPrincipal(context: RequestContext, principal: Principal | undefined): AuthenticatedContext {
  if (principal === undefined) rejectCredential(context, 'key_invalid')
  context.principal = principal
  context.arrivedKey ??= principal.key
  if (principal.allowedRanges.length > 0) context.address = clientOf(context).address
  return context as AuthenticatedContext
}

/** Authenticates and admits again after a wait, during which the key may have been revoked. */
export function readmit(context: RequestContext): MaybePromise<AuthenticatedContext> {
  return andThen(reauthenticate(context), (again) => {
    const denial = admit(again)
    if (denial !== undefined) throw problemForDenial(denial)
    return again
  })
}

/** Makes the check of a request by the facts under which it changes its key. */
export function createRecheck(context: AuthenticatedContext): NonNullable<Grant['recheck']> {
  const { service, principal: { policies }, requestedPartner, scope, selfService } = context
  return (facts, modules) => {
    const principal = preparePrincipal(facts, policies, modules)
    const address = principal.allowedRanges.length > 0 ? clientOf(context).address : undefined
    const now = service.clock.now()
    const denial = admit({ principal, address, now }) ??
      authorize({ principal, address, now, requestedPartner, scope, selfService })
    if (denial !== undefined) throw problemForDenial(denial)
  }
}

/** Steps 6 and 7: the state of the key and its address allow-list. */
export function checkKeyStatus(context: AuthenticatedContext): void {
  const denial = admit(context)
  if (denial?.reason === 'address_not_allowed') throw problemForDenial(denial)
  if (denial !== undefined) rejectCredential(context, denial.reason)
  if (context.isLookUpPending) endLookUp(context)
}

/** Lets the look-ups that wait for this one go on. */
export function endLookUp(context: RequestContext): void {
  context.isLookUpPending = false
  const { error } = context
  const isUnavailable = error instanceof Problem && error.code === 'store_unavailable'
  const { subject } = clientOf(context)
  context.service.failures.endLookup(subject, context.service.elapsed(), isUnavailable ? error : undefined)
}

/** Rejects every request of an address with too many failures. */
export function requireUnblocked(context: RequestContext, now: number): void {
  const retryAfterSeconds = context.service.failures.blockedSeconds(clientOf(context).subject, now)
  if (retryAfterSeconds !== undefined) rejectBlocked(context, retryAfterSeconds)
}

/** Counts the failure against the client's address. */
export function rejectCredential(context: RequestContext, code: ProblemCode): never {
  context.isCredentialRejected = true
  const counted = context.service.failures.count(clientOf(context).subject, context.service.elapsed())
  if (typeof counted === 'number') rejectRateLimited(context, counted)
  context.failureCount = counted
  throw new Problem(code)
}

/** Rejects without counting a failure of the address. */
function rejectBlocked(context: RequestContext, retryAfterSeconds: number): never {
  context.service.limiter.decisions.authfail.refused++
  rejectRateLimited(context, retryAfterSeconds)
}

function rejectRateLimited(context: RequestContext, retryAfterSeconds: number): never {
  context.isCredentialRejected = true
  throw new Problem('rate_limited', { retryAfterSeconds })
}
