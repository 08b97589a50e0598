import type { RateLimitFields } from '../http/message.ts'
import { createLruCache, type LruCache } from '../lib/lru.ts'
import { all, andThen, type MaybePromise } from '../lib/promise.ts'
import type { KeyFacts, Limit, PolicyName } from '../model.ts'
import { type Counted, countedAs } from './partner-quotas.ts'
import {
  isPartnerQuota,
  PARTNER_QUOTA_NAMES,
  type Policies,
  type Policy,
  POLICY_NAMES,
  policySubject,
} from './policies.ts'
import { limitItem } from './rate-limit-fields.ts'

/** The state of a quota after a request, or before one. */
export interface RateLimitState {
  /** Whether the request is within the quota. */
  readonly allowed: boolean
  /** Requests left in the window, 0 or more. */
  readonly remaining: number
  /** Whole seconds until the window ends, 1 or more. */
  readonly resetSeconds: number
  /** Identifies the window of a shared quota of a partner. */
  readonly term?: number
  /** Whether the state is known locally, and the quota store may know better. */
  readonly isStale?: boolean
}

/** Counts requests of a subject (a key's id, an address or a partner) against policies. `now` is a monotonic clock. */
export interface Limiter {
  /** @throws when the quota is shared and the quota store does not respond. */
  consume(policy: Policy, subject: string, now: number): MaybePromise<RateLimitState>
  /** The state that a request would get, without counting one. */
  peek(policy: Policy, subject: string, now: number): MaybePromise<RateLimitState>
  /** The state that a request would get as far as this process knows it. */
  peekLocal(policy: Policy, subject: string, now: number): RateLimitState
  /** Whether no other process counts against the policy. */
  isLocal(policy: Policy): boolean
  /** What `consume` decided since the start. */
  readonly decisions: LimitDecisions
  /** Returns what was leased and not used. Never rejects. */
  close(): Promise<void>
}

/** Counts of decisions by policy. */
export type LimitDecisions = Readonly<Record<PolicyName, { allowed: number; refused: number }>>

/** The state of a window after a request, in whole seconds. @param resetMs Milliseconds until the window ends. */
export function rateLimitState(
  { windowSeconds, resetSeconds }: Policy,
  allowed: boolean,
  remaining: number,
  resetMs: number,
): RateLimitState {
  // Counted from the start of the window: rounding up the time until its end would make 61 seconds of 60.
  const openForMs = Math.max(0, windowSeconds * 1000 - resetMs)
  return {
    allowed,
    remaining: Math.max(0, remaining),
    resetSeconds: resetSeconds ?? Math.max(1, windowSeconds - Math.floor(openForMs / 1000)),
  }
}

/** Makes a value for each policy. */
function forPolicies<T>(create: (name: PolicyName) => T): Readonly<Record<PolicyName, T>> {
  return Object.fromEntries(POLICY_NAMES.map((name) => [name, create(name)])) as Record<PolicyName, T>
}

const maxWindows = 100_000

/**
 * The windows of each policy by subject, without those that were least recently used: `onEvict`
 * receives the evicted ones.
 */
export function createWindows<W>(
  onEvict?: (evicted: Map<string, W>) => void,
): Readonly<Record<PolicyName, LruCache<W>>> {
  return forPolicies(() => createLruCache<W>(maxWindows, undefined, onEvict))
}

/** A subject has no object before its second request: a million keys take 40 MB less. */
type CountedWindows = LruCache<RateWindow | number>

/** Windows that are counted in memory. */
export type LocalWindows = Readonly<Record<PolicyName, CountedWindows>>

const windowsOfStores = new WeakMap<object, Map<string, CountedWindows>>()

/**
 * The windows in which all services of this process on a store count what is not counted in the store. Those of another
 * length are apart: each request to the service with the shorter ones would end the longer ones. Those on a given clock
 * are, too.
 */
export function localWindowsOf(
  store: object,
  limits: Readonly<Partial<Record<PolicyName, Limit>>>,
  isClockGiven: boolean,
): LocalWindows {
  const known = windowsOfStores.get(store) ?? new Map<string, CountedWindows>()
  windowsOfStores.set(store, known)
  return forPolicies((name) => {
    const length = `${name} ${limits[name]?.windowSeconds} ${isClockGiven}`
    const windows = known.get(length) ?? createLruCache<RateWindow | number>(maxWindows)
    known.set(length, windows)
    return windows
  })
}

/** A limiter whose windows follow a clock, whatever the time of its callers. */
export function followClock(limiter: Limiter, now: () => number): Limiter {
  return {
    consume: (policy, subject) => limiter.consume(policy, subject, now()),
    peek: (policy, subject) => limiter.peek(policy, subject, now()),
    peekLocal: (policy, subject) => limiter.peekLocal(policy, subject, now()),
    isLocal: (policy) => limiter.isLocal(policy),
    decisions: limiter.decisions,
    close: () => limiter.close(),
  }
}

/** A limiter that counts in this process alone. */
export interface LocalLimiter extends Limiter {
  consume(policy: Policy, subject: string, now: number): RateLimitState
  peek(policy: Policy, subject: string, now: number): RateLimitState
}

/**
 * Counts in memory, in windows of fixed length that start with their first request: each passes exactly the quota.
 * @param goesBack Whether time may go back: a window of the future then keeps what it counted, and is open from now on.
 */
export function createLocalLimiter(
  windows: LocalWindows = createWindows<RateWindow | number>(),
  goesBack = false,
): LocalLimiter {
  const decisions: LimitDecisions = forPolicies(() => ({ allowed: 0, refused: 0 }))

  function findWindow(policy: Policy, subject: string, now: number): RateWindow {
    const window = toWindow(windows[policy.name].get(subject), now)
    if (goesBack) window.openedAt = Math.min(window.openedAt, now)
    return window
  }

  function peek(policy: Policy, subject: string, now: number): RateLimitState {
    const window = findWindow(policy, subject, now)
    if (now >= windowEnd(window, policy)) {
      return rateLimitState(policy, true, policy.quota, policy.windowSeconds * 1000)
    }
    return stateOf(policy, window, now, window.count < policy.quota)
  }

  return {
    consume(policy: Policy, subject: string, now: number): RateLimitState {
      const known = windows[policy.name].get(subject)
      const window = findWindow(policy, subject, now)
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
    isLocal: () => true,
    decisions,
    close: () => Promise.resolve(),
  }
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

/** The outcome of counting a request, with the values of its header fields. */
export interface RateLimitResult extends RateLimitFields {
  /** Whole seconds to wait; `undefined` when the request is within all quotas. */
  readonly retryAfterSeconds: number | undefined
}

/** Called after a request that counts toward a quota of its partner. Never throws. */
export type QuotaObserver = (
  counted: Counted,
  partner: string,
  state: RateLimitState,
  at: number,
) => void

/** What a request is counted with. */
interface Counting {
  readonly limiter: Limiter
  readonly quotaCounted: QuotaObserver
  readonly facts: KeyFacts
  /** The time of the request, milliseconds of the monotonic clock. */
  readonly now: number
  /** The time of the request, milliseconds since the epoch. */
  readonly at: number
}

/** A policy with its state after the request. */
interface Consumed {
  readonly policy: Policy
  readonly state: RateLimitState
}

/**
 * Counts a request against every policy that applies to it; `undefined` when none is on. Where `key` applies, so do the
 * quotas of the partner, the last: a request that another policy refuses does not count toward them.
 *
 * @param now On the monotonic clock. @param at Milliseconds since the epoch.
 * @throws like `Limiter.consume`.
 */
export function consumeQuotas(
  { limiter, quotaCounted }: { readonly limiter: Limiter; readonly quotaCounted: QuotaObserver },
  principal: KeyFacts & { readonly policies: Policies },
  { limits, skipsQuotas }: { readonly limits: readonly PolicyName[]; readonly skipsQuotas?: true },
  now: number,
  at: number,
): MaybePromise<RateLimitResult | undefined> {
  const { policies, key, partner } = principal
  const hasQuotas = !skipsQuotas && (policies.month !== undefined || policies.partner !== undefined)
  // Most routes have one policy, which needs no arrays.
  if (limits.length === 1 && !hasQuotas) {
    const name = limits[0]!
    return consumeQuota(limiter, policies[name], policySubject(name, key.id, partner.slug), now)
  }
  const names = limits.flatMap((name) => name === 'key' && hasQuotas ? [name, ...PARTNER_QUOTA_NAMES] : name)
  const applied = names.flatMap((name) => policies[name] ?? [])
  if (applied.length === 0) return undefined
  const counting = { limiter, quotaCounted, facts: principal, now, at }
  const own = applied.filter(({ name }) => !isPartnerQuota(name))
  const quotas = applied.filter(({ name }) => isPartnerQuota(name))
    .map((policy) => countedAs(policy, key.id, partner, at))
  const consumed = andThen(consumeOwnPolicies(counting, own), (ofKey) => {
    if (ofKey.some(({ state }) => !state.allowed)) return ofKey
    return andThen(orderQuotas(counting, quotas), (ordered) => consumeInOrder(counting, ordered, ofKey))
  })
  return andThen(consumed, (states) => combineResults(applied, states))
}

/** Counts the request against each policy that is not a quota of its partner. */
function consumeOwnPolicies(
  { limiter, facts: { key, partner }, now }: Counting,
  policies: readonly Policy[],
): MaybePromise<readonly Consumed[]> {
  const consumed = policies.map((policy) =>
    andThen(
      limiter.consume(policy, policySubject(policy.name, key.id, partner.slug), now),
      (state): Consumed => ({ policy, state }),
    )
  )
  return all(consumed, (each): readonly Consumed[] => each)
}

/** Puts the quota with less left first: if it refuses the request, that does not count toward the other. */
function orderQuotas(
  { limiter, now }: Counting,
  quotas: readonly Counted[],
): MaybePromise<readonly Counted[]> {
  const peeked = quotas.map((counted) => {
    const { policy, subject } = counted
    const known = limiter.peekLocal(policy, subject, now)
    const state = known.isStale ? limiter.peek(policy, subject, now) : known
    return andThen(state, ({ remaining }) => ({ counted, remaining }))
  })
  return all(
    peeked,
    (each) => each.toSorted((one, other) => one.remaining - other.remaining).map(({ counted }) => counted),
  )
}

/** Counts the request against one quota after the other, until one refuses it. @param consumed What came before. */
function consumeInOrder(
  counting: Counting,
  [counted, ...rest]: readonly Counted[],
  consumed: readonly Consumed[],
): MaybePromise<readonly Consumed[]> {
  if (counted === undefined) return consumed
  const { limiter, quotaCounted, facts, now, at } = counting
  const { policy, subject } = counted
  return andThen(limiter.consume(policy, subject, now), (state) => {
    quotaCounted(counted, facts.partner.slug, state, at)
    const withThis = [...consumed, { policy, state }]
    return state.allowed ? consumeInOrder(counting, rest, withThis) : withThis
  })
}

/** @param applied The policies in the order of the fields. */
function combineResults(applied: readonly Policy[], consumed: readonly Consumed[]): RateLimitResult {
  const inOrder = applied.flatMap(({ name }) => consumed.filter(({ policy }) => policy.name === name))
  const waits = consumed.flatMap(({ state }) => retryAfterSeconds(state) ?? [])
  return {
    policy: inOrder.map(({ policy }) => policy.field).join(', '),
    limit: inOrder.map(({ policy, state }) => limitItem(policy.name, state)).join(', '),
    retryAfterSeconds: waits.length === 0 ? undefined : Math.max(...waits),
  }
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
    ? state.then((resolved) => rateLimitResult(policy, resolved))
    : rateLimitResult(policy, state)
}

function rateLimitResult(policy: Policy, state: RateLimitState): RateLimitResult {
  return {
    policy: policy.field,
    limit: limitItem(policy.name, state),
    retryAfterSeconds: retryAfterSeconds(state),
  }
}

/** Whole seconds to wait; `undefined` when the request was within the quota. */
export function retryAfterSeconds({ allowed, resetSeconds }: RateLimitState): number | undefined {
  return allowed ? undefined : resetSeconds
}
