/** Steps 4 to 7 of a request: whose key it carries, and whether the key may be used. */
import type { ServiceNames } from './http/headers.ts'
import { Problem, type ProblemCode } from './http/problem.ts'
import { containsKey } from './http/redact.ts'
import type { KeyLookup } from './keys/authenticator.ts'
import { ambiguous, readCredential } from './keys/credential.ts'
import { preparePrincipal, type Principal } from './keys/principal.ts'
import { andThen, lastly, type MaybePromise } from './lib/promise.ts'
import { admit, authorize, type Grant, problemForDenial } from './policy/decide.ts'
import type { Revision } from './ports/facts.ts'
import { type AuthenticatedContext, clientOf, parseQuery, type RequestContext } from './request-context.ts'

/**
 * Steps 4 and 5: the failed-authentication limit of the address, and the shape of the credential.
 *
 * @returns A promise of its refusal, where that has to be counted elsewhere.
 */
export function requireCredential(context: RequestContext): Promise<never> | undefined {
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
  if (credential === ambiguous) return rejectCredential(context, 'ambiguous_credentials')
  context.credential = credential
  return undefined
}

/** Says where the key belongs to a client that sends one elsewhere. */
function missingKey({ keyHeader }: ServiceNames, context: RequestContext): Problem {
  const { request } = context
  const misplacements: readonly (readonly [isMisplaced: () => unknown, sentence: string])[] = [
    [() => hasKeyInQuery(context), 'A key in the URL is not read, and is in logs now: have it replaced.'],
    [() => request.header('x-api-key'), 'A key in X-API-Key is not read.'],
    [() => request.header('authorization'), 'A key in Authorization is read after the scheme Bearer only.'],
  ]
  const [, sentence] = misplacements.find(([isMisplaced]) => isMisplaced()) ?? []
  if (sentence === undefined) return new Problem('key_missing')
  const detail = `${sentence} Send the key in ${keyHeader}, or as "Authorization: Bearer KEY".`
  return new Problem('key_missing', { detail })
}

function hasKeyInQuery(context: RequestContext): boolean {
  return parseQuery(context).values.entries()
    .some(([name, values]) => /(?:key|token)$/i.test(name) || [name, ...values].some(containsKey))
}

/**
 * Step 6: the principal that holds the key.
 *
 * @param asOf The instant, on the monotonic clock, at which the facts must be current.
 */
export function authenticate(context: RequestContext, asOf: number): MaybePromise<AuthenticatedContext> {
  return andThen(currentRevision(context, asOf), (revision) => {
    const found = context.service.authenticator.authenticate(context.credential, revision)
    if (typeof found === 'function') return lookUpKey(context, found)
    return andThen(found, (principal) => setPrincipal(context, principal))
  })
}

function currentRevision(context: RequestContext, asOf: number): MaybePromise<Revision> {
  const { revisionCache, clock } = context.service
  return andThen(revisionCache.get(asOf, clock.date()), (revision) => context.revision = revision)
}

function reauthenticate(context: RequestContext): MaybePromise<AuthenticatedContext> {
  context.now = context.service.clock.now()
  return authenticate(context, context.service.elapsed())
}

/** Looks a key up. One that is not in force is counted as a failure before the look-up ends. */
function lookUpKey(context: RequestContext, find: KeyLookup): MaybePromise<AuthenticatedContext> {
  const identify = (principal: Principal | undefined) =>
    andThen(setPrincipal(context, principal), (known) => checkKeyStatus(known) ?? known)
  const findAgain = () => {
    context.now = context.service.clock.now()
    return andThen(currentRevision(context, context.service.elapsed()), (revision) => {
      const found = context.service.authenticator.authenticate(context.credential, revision)
      if (typeof found !== 'function') return andThen(found, identify)
      requireUnblocked(context)
      return andThen(found(), identify)
    })
  }
  return admitLookUp(context, (hasWaited) => hasWaited ? findAgain() : andThen(find(), identify))
}

/**
 * Looks a credential up for an address that is not blocked. Until that ends it counts as a failure of the address; over
 * the limit, further look-ups wait for it.
 *
 * @param lookUp Called when the look-up may begin. What it throws ends it, and fails those that
 * wait if that is the store.
 */
export function admitLookUp<T>(
  context: RequestContext,
  lookUp: (hasWaited: boolean) => MaybePromise<T>,
): MaybePromise<T> {
  const { failures, elapsed } = context.service
  const { subject } = clientOf(context)
  requireUnblocked(context)
  const turn = failures.beginLookup(subject, elapsed())
  const run = () =>
    lastly(() => lookUp(turn !== undefined), (error) => {
      const isUnavailable = error instanceof Problem && error.code === 'store_unavailable'
      failures.endLookup(subject, elapsed(), isUnavailable ? error : undefined)
    })
  return turn === undefined ? run() : turn.then(run)
}

function setPrincipal(
  context: RequestContext,
  principal: Principal | undefined,
): MaybePromise<AuthenticatedContext> {
  if (principal === undefined) return rejectCredential(context, 'key_invalid')
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

/**
 * Steps 6 and 7: the state of the key and its address allow-list.
 *
 * @returns A promise of its refusal, where that has to be counted elsewhere.
 */
export function checkKeyStatus(context: AuthenticatedContext): Promise<never> | undefined {
  const denial = admit(context)
  if (denial?.reason === 'address_not_allowed') throw problemForDenial(denial)
  return denial && rejectCredential(context, denial.reason)
}

/** Rejects every request of an address with too many failures. */
export function requireUnblocked(context: RequestContext, now: number = context.service.elapsed()): void {
  const retryAfterSeconds = context.service.failures.blockedSeconds(clientOf(context).subject, now)
  if (retryAfterSeconds !== undefined) rejectBlocked(context, retryAfterSeconds)
}

/**
 * Rejects a credential, once its failure is counted against the client's address: concurrent failures over the limit
 * get 429.
 *
 * @returns A promise of the rejection, where the count is shared.
 */
export function rejectCredential(context: RequestContext, code: ProblemCode): Promise<never> {
  context.isCredentialRejected = true
  const reject = (retryAfterSeconds: number | undefined): never => {
    if (retryAfterSeconds !== undefined) rejectRateLimited(context, retryAfterSeconds)
    throw new Problem(code)
  }
  const counted = context.service.failures.count(clientOf(context).subject, context.service.elapsed())
  return counted instanceof Promise ? counted.then(reject) : reject(counted)
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
