import { delay, type MaybePromise } from '../lib/promise.ts'
import type { Limit, PolicyName } from '../model.ts'
import type { LeaseRequest, QuotaLease, QuotaReturn, QuotaStore } from '../ports/quotas.ts'
import {
  createLocalLimiter,
  createWindows,
  type Limiter,
  type LocalLimiter,
  type LocalWindows,
  type RateLimitState,
  rateLimitState,
} from './limiter.ts'
import { isDurable, storedSeconds } from './partner-quotas.ts'
import { isPartnerQuota, type Policy, POLICY_NAMES } from './policies.ts'

/** The largest part of a quota that all replicas together hold without having used it. */
const heldShare = 0.02

/** Enough for one statement of a store, which other requests wait for. */
const maxReturnsAtOnce = 500

/**
 * Milliseconds after which a spent quota of a partner is looked up again: another replica may have returned a lease.
 */
const recheckMs = 1_000

/**
 * Counts together with other replicas: each leases portions of a quota from the quota store and spends them by itself.
 * Never more than the quota passes in a window, and at most 2 % of it stays unused in leases; of a window of an hour or
 * more, replicas that start later add their share. When a quota changes, up to 2 % of the previous one may pass in
 * addition: leases that replicas have used and not reported yet. Quotas of partners count all leases as used, so that
 * they never count too few.
 *
 * @param options.localFallback Whether to use this replica's share of each quota, instead of failing, while the quota
 * store does not respond; never for durable quotas.
 * @param options.limits The limits of the service. Services whose windows have another length count apart: each
 * request to the one with the shorter ones would end the longer ones.
 * @param options.isClockGiven Whether time may go back; default false.
 * @param options.windows Where to count what this process counts by itself; default in windows of this limiter's own.
 */
export function createSharedLimiter(quotas: QuotaStore, options: SharedLimiterOptions): Limiter {
  return new SharedLimiter(quotas, options)
}

interface SharedLimiterOptions {
  replicas(): number
  elapsed(): number
  readonly localFallback: boolean
  readonly limits?: Readonly<Partial<Record<PolicyName, Limit>>>
  readonly isClockGiven?: boolean
  readonly windows?: LocalWindows
}

class SharedLimiter implements Limiter {
  readonly #quotas: QuotaStore
  readonly #options: SharedLimiterOptions
  /** Seconds of the shortest window that is shared. */
  readonly #leastSeconds: number
  readonly #windows = createWindows<LeasedWindow>((evicted) => this.#return(evicted))
  #returning: Promise<void> = Promise.resolve()
  readonly #local: LocalLimiter
  readonly decisions: Limiter['decisions']

  constructor(quotas: QuotaStore, options: SharedLimiterOptions) {
    this.#quotas = quotas
    this.#local = createLocalLimiter(options.windows, options.isClockGiven)
    this.decisions = this.#local.decisions
    this.#leastSeconds = quotas.leastWindowSeconds
    // A process that counts short windows by itself goes on with all, for instance on a full disk.
    this.#options = { ...options, localFallback: options.localFallback || this.#leastSeconds > 1 }
  }

  consume(policy: Policy, subject: string, now: number): MaybePromise<RateLimitState> {
    if (this.isLocal(policy)) return this.#local.consume(policy, subject, now)
    const window = this.#windowOf(policy, subject, now)
    if (window.held > 0 || window.remaining === 0) return this.#take(window, policy, now)
    return new Promise((resolve, reject) => {
      window.waiting.push({ resolve, reject })
      if (!window.isLeasing) void this.#serveWaiting(window, policy, subject)
    })
  }

  async peek(policy: Policy, subject: string, now: number): Promise<RateLimitState> {
    if (this.isLocal(policy)) return this.#local.peek(policy, subject, now)
    const window = this.#windowOf(policy, subject, now)
    window.checkedAt = now
    try {
      const { remaining: left, resetMs, term } = await this.#lease(policy, subject, { wanted: 0 })
      // The next request asks for a lease if others have returned some, and none does if nothing is left.
      const isNews = isPartnerQuota(policy.name) && !window.isLeasing && window.held === 0 &&
        !window.remaining
      if (isNews) Object.assign(window, { remaining: left, endsAt: now + resetMs, term })
      const remaining = left + window.held
      return rateLimitState(policy, remaining > 0, remaining, resetMs)
    } catch {
      return this.peekLocal(policy, subject, now)
    }
  }

  peekLocal(policy: Policy, subject: string, now: number): RateLimitState {
    if (this.isLocal(policy)) return this.#local.peekLocal(policy, subject, now)
    const window = this.#windows[policy.name].get(subject)
    const { held, remaining: left, endsAt, checkedAt } = window && now < window.endsAt ? window : unleased
    const remaining = left === undefined ? policy.quota : held + left
    const resetMs = Math.min(policy.windowSeconds * 1000, endsAt - now)
    const state = rateLimitState(policy, remaining > 0, remaining, resetMs)
    const isOld = left === undefined || remaining === 0 && now - checkedAt >= recheckMs
    return isOld && isPartnerQuota(policy.name) && !window?.isLeasing ? { ...state, isStale: true } : state
  }

  close(): Promise<void> {
    return this.#return(POLICY_NAMES.flatMap((name) => this.#windows[name].entries()))
  }

  /** Empties windows, and returns what they held. Never rejects. */
  #return(windows: Iterable<readonly [string, LeasedWindow]>): Promise<void> {
    const rest = Iterator.from(windows)
    return this.#returning = this.#returning.then(async () => {
      for (let some; (some = rest.take(maxReturnsAtOnce).toArray()).length > 0;) {
        const returns = some.flatMap(([subject, window]): QuotaReturn[] => {
          const { policy, term, used, held: unused, endsAt } = window
          window.used = window.held = 0
          const isLeased = term !== unleased.term && used + unused > 0 && this.#options.elapsed() < endsAt
          return isLeased
            ? [{ policy, subject: this.#storedSubject(policy, subject), term, used, unused }]
            : []
        })
        try {
          if (returns.length > 0) await this.#quotas.returnQuotas(returns)
          // A synchronous store would have requests wait for all.
          if (some.length > 1) await delay(1)
        } catch {
          // Perhaps returned, so not again. Like the leases of a process that was killed, they may stay unused.
        }
      }
    })
  }

  isLocal({ name, windowSeconds }: Policy): boolean {
    return windowSeconds < this.#leastSeconds || !this.#quotas.sharesLimits && !isPartnerQuota(name)
  }

  /** The window as far as this process knows it. */
  #windowOf(policy: Policy, subject: string, now: number): LeasedWindow {
    const { name, quota, windowSeconds } = policy
    let window = this.#windows[name].get(subject)
    if (window === undefined || quota !== window.quota || windowSeconds !== window.windowSeconds) {
      // A changed policy gets a new window, and a pending lease under the old numbers does not apply to it. It
      // leases after what is held is returned.
      const returned = window && this.#return([[subject, window]])
      const changed = { policy: name, quota, windowSeconds, isLeasing: returned !== undefined }
      window = { ...unleased, ...changed, waiting: [] }
      void returned?.then(() => this.#serveWaiting(window!, policy, subject))
      this.#windows[name].set(subject, window)
    } else if (now >= window.endsAt || this.#isOfFuture(window, now)) {
      Object.assign(window, unleased)
    }
    return window
  }

  /** Whether it was leased before time went back. */
  #isOfFuture({ endsAt, windowSeconds }: LeasedWindow, now: number): boolean {
    return this.#options.isClockGiven === true && Number.isFinite(endsAt) &&
      endsAt - now > windowSeconds * 1000
  }

  #take(window: LeasedWindow, policy: Policy, now: number): RateLimitState {
    const allowed = window.held > 0
    if (allowed) {
      window.held--
      window.used++
    }
    this.decisions[policy.name][allowed ? 'allowed' : 'refused']++
    const remaining = window.held + (window.remaining ?? 0)
    const state = rateLimitState(policy, allowed, remaining, window.endsAt - now)
    return isPartnerQuota(policy.name) ? { ...state, term: window.term } : state
  }

  /** One lease at a time: requests that arrive during it wait together for the next one. */
  async #serveWaiting(window: LeasedWindow, policy: Policy, subject: string): Promise<void> {
    window.isLeasing = true
    for (let served = window.waiting; served.length > 0; served = window.waiting) {
      window.waiting = []
      const askedAt = this.#options.elapsed()
      if (askedAt >= window.endsAt) Object.assign(window, unleased)
      // What an earlier lease left over is used first: otherwise more than the share would be held.
      const missing = served.length - window.held
      try {
        if (missing > 0 && window.remaining !== 0) {
          const leased = await this.#leaseOrFallBack(window, policy, subject, missing)
          // A lease of an earlier term is not valid any more.
          window.held = (leased.term === window.term ? window.held : 0) + leased.granted
          const { term, remaining, resetMs } = leased
          Object.assign(window, { term, remaining, endsAt: askedAt + resetMs, checkedAt: askedAt })
        }
        for (const waiter of served) {
          // Requests that have arrived since then may have taken what was held.
          if (window.held > 0 || window.remaining === 0) waiter.resolve(this.#take(window, policy, askedAt))
          else window.waiting.push(waiter)
        }
      } catch (error) {
        for (const { reject } of served) reject(error)
      }
    }
    window.isLeasing = false
    // It was evicted, or its policy changed, during a lease.
    if (this.#windows[policy.name].get(subject) !== window) void this.#return([[subject, window]])
  }

  async #leaseOrFallBack(
    window: LeasedWindow,
    policy: Policy,
    subject: string,
    waiting: number,
  ): Promise<QuotaLease> {
    const { replicas, elapsed, localFallback } = this.#options
    const { term, used, remaining: left = policy.quota, endsAt } = window
    // Reported once: the window may end, or its policy change, during the lease.
    window.used = 0
    const share = Math.floor(policy.quota * heldShare)
    try {
      const wanted = Math.max(Math.floor(share / replicas()), waiting)
      // In a longer window, what killed processes held would make leases small for long.
      const mostHeld = policy.windowSeconds < 3_600 ? share : 0
      const leased = await this.#lease(policy, subject, { wanted, waiting, mostHeld, report: { term, used } })
      window.used -= Math.min(leased.granted, waiting)
      return leased
    } catch (error) {
      window.used += used
      if (!localFallback || isDurable(policy)) throw error
      const share = Math.min(left, Math.max(1, Math.floor(policy.quota / replicas())))
      const resetMs = Math.min(policy.windowSeconds * 1000, endsAt - elapsed())
      return { granted: share, remaining: 0, resetMs, term: unleased.term }
    }
  }

  async #lease(
    policy: Policy,
    subject: string,
    request: Pick<LeaseRequest, 'wanted' | 'waiting' | 'mostHeld' | 'report'>,
  ): Promise<QuotaLease> {
    const { name, quota } = policy
    return await this.#quotas.leaseQuota({
      policy: name,
      subject: this.#storedSubject(name, subject),
      quota,
      windowSeconds: storedSeconds(policy),
      ...request,
    })
  }

  /** A subject with the window of the service: requests still count after a limit of a key or partner has changed. */
  #storedSubject(name: PolicyName, subject: string): string {
    const limit = this.#options.limits?.[name]
    return limit === undefined ? subject : `${subject} ${limit.windowSeconds}`
  }
}

/**
 * The window of a subject, as far as this process knows it. It is
 * - unleased at first, and again when its time is over: requests wait for a lease.
 * - leased while `held` is above 0: requests use that.
 * - used up when `held` is 0: requests wait for the next lease.
 * - spent when `remaining` is 0, too: requests are refused until its time is over.
 */
interface LeasedWindow extends Pick<LeaseRequest, 'policy' | 'quota' | 'windowSeconds'> {
  /** Requests that were leased and not yet used. */
  held: number
  /** Requests that were leased, used, and not yet reported. */
  used: number
  /** The term of the last lease; 0 before the first. */
  term: number
  /** What the last lease left in the quota store; `undefined` before the first lease in this window. */
  remaining: number | undefined
  /** The end of the window, never later than in the quota store. */
  endsAt: number
  waiting: {
    resolve(state: RateLimitState): void
    reject(error: unknown): void
  }[]
  isLeasing: boolean
  /** When the last lease or look-up began. */
  checkedAt: number
}

const unleased = { held: 0, used: 0, term: 0, remaining: undefined, endsAt: Infinity, checkedAt: -Infinity }
