import { createLruCache, type LruCache } from '../lib/lru.ts'
import type { MaybePromise } from '../lib/promise.ts'
import type { LimitName } from '../model.ts'
import type { Policies, Policy } from './policies.ts'

/** What is left of a quota. */
export interface RateLimitState {
  /** Whether the request that was counted is within the quota. */
  readonly allowed: boolean
  /** Requests left in the window, 0 or more. */
  readonly remaining: number
  /** Whole seconds until the quota is whole again, 1 or more. */
  readonly resetSeconds: number
}

/** Counts requests against policies. `now` is milliseconds on a clock that is never set back. */
export interface Limiter {
  /**
   * Counts a request of `subject` (a key's id, an address).
   * @throws when others count too and can't be asked.
   */
  consume(policy: Policy, subject: string, now: number): MaybePromise<RateLimitState>
  /** What a request would meet, without counting one. */
  peek(policy: Policy, subject: string, now: number): MaybePromise<RateLimitState>
  /** The same as far as it is known here, without asking anybody. */
  peekLocal(policy: Policy, subject: string, now: number): RateLimitState
}

/** What a quota is with `remaining` requests left, in a window that ends in `resetMs`. */
export function rateLimitState(
  policy: Policy,
  allowed: boolean,
  remaining: number,
  resetMs: number,
): RateLimitState {
  const { windowSeconds } = policy
  // Counted from the opening: rounded up from the end, fractions would make 61 seconds of 60.
  const openForMs = Math.max(0, windowSeconds * 1000 - resetMs)
  return {
    allowed,
    remaining: Math.max(0, remaining),
    resetSeconds: Math.max(1, windowSeconds - Math.floor(openForMs / 1000)),
  }
}

/** A limiter that has nobody to ask. */
export interface LocalLimiter extends Limiter {
  consume(policy: Policy, subject: string, now: number): RateLimitState
  peek(policy: Policy, subject: string, now: number): RateLimitState
}

/**
 * Counts in memory. Windows of fixed length, each opened by the first request that finds none open: exactly the quota
 * passes in one.
 *
 * @param maxWindows How many windows of a policy are remembered; those not asked for longest are forgotten first.
 */
export function createLocalLimiter(maxWindows = 200_000): LocalLimiter {
  const windows: Readonly<Record<LimitName, LruCache<RateWindow>>> = {
    key: createLruCache(maxWindows),
    signup: createLruCache(maxWindows),
    verify: createLruCache(maxWindows),
    authfail: createLruCache(maxWindows),
  }

  function peek(policy: Policy, subject: string, now: number): RateLimitState {
    const window = windows[policy.name].get(subject)
    if (window === undefined || now >= windowEnd(window, policy)) {
      return { allowed: true, remaining: policy.quota, resetSeconds: policy.windowSeconds }
    }
    return stateOf(policy, window, now, window.count < policy.quota)
  }

  return {
    consume(policy, subject, now) {
      const known = windows[policy.name]
      let window = known.get(subject)
      if (window === undefined) known.set(subject, window = { count: 0, openedAt: now })
      else if (now >= windowEnd(window, policy)) {
        window.count = 0
        window.openedAt = now
      }
      const allowed = window.count < policy.quota
      if (allowed) window.count++
      return stateOf(policy, window, now, allowed)
    },
    peek,
    peekLocal: peek,
  }
}

interface RateWindow {
  count: number
  openedAt: number
}

/** A policy that was changed binds a window that is open. */
function windowEnd(window: RateWindow, policy: Policy): number {
  return window.openedAt + policy.windowSeconds * 1000
}

function stateOf(policy: Policy, window: RateWindow, now: number, allowed: boolean): RateLimitState {
  return rateLimitState(policy, allowed, policy.quota - window.count, windowEnd(window, policy) - now)
}

/** What the policies of a route say to a request. */
export interface RateLimitResult {
  /**
   * `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11 §3 and §4) with every policy that
   * was met, names and values in turn; empty when none is on.
   */
  readonly fields: readonly string[]
  /** Whole seconds to wait when a quota is spent; `undefined` when all hold. */
  readonly retryAfterSeconds: number | undefined
}

/**
 * Counts a request against every policy that applies to it.
 *
 * @param now Milliseconds on a clock that is never set back.
 * @throws when a quota is shared and nobody can be asked about it.
 */
export function consumeQuotas(
  limiter: Limiter,
  policies: Policies,
  names: readonly LimitName[],
  subject: string,
  now: number,
): MaybePromise<RateLimitResult> {
  let policyField = ''
  let consumed: ConsumedPolicy[] | undefined
  let isPending = false
  for (const name of names) {
    const policy = policies[name]
    if (policy === undefined) continue
    policyField += policyField === '' ? policy.field : `, ${policy.field}`
    const entry = { name, state: limiter.consume(policy, subject, now) }
    isPending ||= entry.state instanceof Promise
    if (consumed === undefined) consumed = [entry]
    else consumed.push(entry)
  }
  if (consumed === undefined) return noPolicies
  if (!isPending) return toRateLimitResult(policyField, consumed as ResolvedPolicy[])
  return Promise.all(
    consumed.map(async ({ name, state }) => ({ name, state: await state })),
  )
    .then((settled) => toRateLimitResult(policyField, settled))
}

interface ConsumedPolicy {
  readonly name: LimitName
  readonly state: MaybePromise<RateLimitState>
}

interface ResolvedPolicy extends ConsumedPolicy {
  readonly state: RateLimitState
}

const noPolicies: RateLimitResult = { fields: [], retryAfterSeconds: undefined }

function toRateLimitResult(policyField: string, consumed: readonly ResolvedPolicy[]): RateLimitResult {
  let limitField = ''
  let retryAfterSeconds: number | undefined
  for (const { name, state: { allowed, remaining, resetSeconds } } of consumed) {
    limitField += `${limitField === '' ? '' : ', '}"${name}";r=${remaining};t=${resetSeconds}`
    if (!allowed) retryAfterSeconds = Math.max(retryAfterSeconds ?? 0, resetSeconds)
  }
  return { fields: ['RateLimit-Policy', policyField, 'RateLimit', limitField], retryAfterSeconds }
}
