import type { RateLimitFields } from '../http/message.ts'
import { createLruCache, type LruCache } from '../lib/lru.ts'
import { all, type MaybePromise } from '../lib/promise.ts'
import type { LimitName } from '../model.ts'
import { LIMIT_NAMES, type Policies, type Policy } from './policies.ts'

/** The state of a quota after a request, or before one. */
export interface RateLimitState {
  /** Whether the request is within the quota. */
  readonly allowed: boolean
  /** Requests left in the window, 0 or more. */
  readonly remaining: number
  /** Whole seconds until the window ends, 1 or more. */
  readonly resetSeconds: number
}

/** Counts requests of a subject (a key's id or an address) against policies. `now` is a monotonic clock. */
export interface Limiter {
  /** @throws when the quota is shared and the quota store does not respond. */
  consume(policy: Policy, subject: string, now: number): MaybePromise<RateLimitState>
  /** The state that a request would get, without counting one. */
  peek(policy: Policy, subject: string, now: number): MaybePromise<RateLimitState>
  /** The same as far as this process knows it. */
  peekLocal(policy: Policy, subject: string, now: number): RateLimitState
  /** What `consume` decided since the start. */
  readonly decisions: LimitDecisions
  /** Returns what was leased and not used. Never rejects. */
  close(): Promise<void>
}

/** Counts of decisions by policy. */
export type LimitDecisions = Readonly<Record<LimitName, { allowed: number; refused: number }>>

export function rateLimitState(
  { windowSeconds }: Policy,
  allowed: boolean,
  remaining: number,
  resetMs: number,
): RateLimitState {
  // Counted from the start of the window: rounding up the time until its end would make 61 seconds of 60.
  const openForMs = Math.max(0, windowSeconds * 1000 - resetMs)
  return {
    allowed,
    remaining: Math.max(0, remaining),
    resetSeconds: Math.max(1, windowSeconds - Math.floor(openForMs / 1000)),
  }
}

/** One of each for every policy. */
function forPolicies<T>(create: () => T): Readonly<Record<LimitName, T>> {
  return Object.fromEntries(LIMIT_NAMES.map((name) => [name, create()])) as Record<LimitName, T>
}

const maxWindows = 100_000

/** The windows of each policy by subject, without those that were least recently used. */
export function createWindows<W>(): Readonly<Record<LimitName, LruCache<W>>> {
  return forPolicies(() => createLruCache<W>(maxWindows))
}

/** Counts in memory, in windows of fixed length that start with their first request: each passes exactly the quota. */
export function createLocalLimiter() {
  // A subject has no object before its second request: a million keys or addresses take 40 MB less.
  const windows = createWindows<RateWindow | number>()
  const decisions: LimitDecisions = forPolicies(() => ({ allowed: 0, refused: 0 }))

  function peek(policy: Policy, subject: string, now: number): RateLimitState {
    const window = toWindow(windows[policy.name].get(subject), now)
    if (now >= windowEnd(window, policy)) {
      return { allowed: true, remaining: policy.quota, resetSeconds: policy.windowSeconds }
    }
    return stateOf(policy, window, now, window.count < policy.quota)
  }

  return {
    consume(policy: Policy, subject: string, now: number): RateLimitState {
      const known = windows[policy.name].get(subject)
      const window = toWindow(known, now)
      if (now >= windowEnd(window, policy)) {
        window.count = 0
        window.openedAt = now
      }
      const allowed = window.count < policy.quota
      if (allowed) window.count++
      if (window !== known) windows[policy.name].set(subject, known === undefined ? now : window)
      decisions[policy.name][allowed ? 'allowed' : 'refused']++
      return stateOf(policy, window, now, allowed)
    },
    peek,
    peekLocal: peek,
    decisions,
    close: () => Promise.resolve(),
  } satisfies Limiter
}

interface RateWindow {
  count: number
  openedAt: number
}

/** @param known A number is when a window opened that has counted one request. */
function toWindow(known: RateWindow | number | undefined, now: number): RateWindow {
  return typeof known === 'object' ? known : { count: known === undefined ? 0 : 1, openedAt: known ?? now }
}

/** The end follows a policy that changes while the window is open. */
function windowEnd(window: RateWindow, policy: Policy): number {
  return window.openedAt + policy.windowSeconds * 1000
}

function stateOf(policy: Policy, window: RateWindow, now: number, allowed: boolean): RateLimitState {
  return rateLimitState(policy, allowed, policy.quota - window.count, windowEnd(window, policy) - now)
}

export interface RateLimitResult extends RateLimitFields {
  /** Whole seconds to wait; `undefined` when the request is within all quotas. */
  readonly retryAfterSeconds: number | undefined
}

/**
 * Counts a request against every policy that applies to it; `undefined` when none is on.
 * @throws like `Limiter.consume`.
 */
export function consumeQuotas(
  limiter: Limiter,
  policies: Policies,
  names: readonly LimitName[],
  subject: string,
  now: number,
): MaybePromise<RateLimitResult | undefined> {
  // Most routes have one policy, which needs no arrays.
  if (names.length === 1) return consumeQuota(limiter, policies[names[0]!], subject, now)
  const applied = names.flatMap((name) => policies[name] ?? [])
  if (applied.length === 0) return undefined
  return all(applied.map((policy) => limiter.consume(policy, subject, now)), (states) => {
    const waits = states.map(retryAfterSeconds).filter((wait) => wait !== undefined)
    return {
      policy: applied.map(({ field }) => field).join(', '),
      limit: applied.map((policy, index) => limitItem(policy, states[index]!)).join(', '),
      retryAfterSeconds: waits.length === 0 ? undefined : Math.max(...waits),
    }
  })
}

function consumeQuota(
  limiter: Limiter,
  policy: Policy | undefined,
  subject: string,
  now: number,
): MaybePromise<RateLimitResult | undefined> {
  if (policy === undefined) return undefined
  const state = limiter.consume(policy, subject, now)
  // Not `andThen`: its closure would cost every request an allocation.
  return state instanceof Promise
    ? state.then((resolved) => toResult(policy, resolved))
    : toResult(policy, state)
}

function toResult(policy: Policy, state: RateLimitState): RateLimitResult {
  return {
    policy: policy.field,
    limit: limitItem(policy, state),
    retryAfterSeconds: retryAfterSeconds(state),
  }
}

function limitItem({ name }: Policy, { remaining, resetSeconds }: RateLimitState): string {
  return `"${name}";r=${remaining};t=${resetSeconds}`
}

/** Whole seconds to wait; `undefined` when the request was within the quota. */
export function retryAfterSeconds({ allowed, resetSeconds }: RateLimitState): number | undefined {
  return allowed ? undefined : resetSeconds
}
