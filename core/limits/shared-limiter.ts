import type { LeaseRequest, QuotaLease, QuotaReturn, QuotaStore } from '../ports/quotas.ts'
import {
  createLocalLimiter,
  createWindows,
  type Limiter,
  type RateLimitState,
  rateLimitState,
} from './limiter.ts'
import { LIMIT_NAMES, type Policy } from './policies.ts'

/** The largest part of a quota that all replicas together hold without having used it. */
const heldShare = 0.02

/** Enough for one statement of a store, which other requests wait for. */
const maxReturnsAtOnce = 500

/**
 * Counts together with other replicas: each leases portions of a quota from the quota store and spends them by itself.
 * Never more than the quota passes in a window, and at most 2 % of it stays unused in leases. When a quota changes, up to
 * 2 % of the previous one may pass in addition: leases that replicas have used and not reported yet.
 *
 * @param options.localFallback Whether to use this replica's share of each quota, instead of failing, while the quota
 * store does not respond.
 */
export function createSharedLimiter(
  quotas: QuotaStore,
  options: { replicas(): number; elapsed(): number; readonly localFallback: boolean },
): Limiter {
  const { replicas, elapsed } = options
  // A process that counts short windows by itself goes on with all, for instance on a full disk.
  const localFallback = options.localFallback || (quotas.leastWindowSeconds ?? 1) > 1
  const windows = createWindows<LeasedWindow>()
  const local = createLocalLimiter()
  const { decisions } = local
  const isLocal = ({ windowSeconds }: Policy): boolean => windowSeconds < (quotas.leastWindowSeconds ?? 1)

  /** The window as far as this process knows it. */
  function windowOf({ name, quota, windowSeconds }: Policy, subject: string, now: number): LeasedWindow {
    let window = windows[name].get(subject)
    if (window === undefined || quota !== window.quota || windowSeconds !== window.windowSeconds) {
      // A changed policy gets a new window, and a pending lease under the old numbers does not apply to it. What was used
      // is reported with the first lease.
      const { term, used } = window ?? unleased
      window = { ...unleased, term, used, quota, windowSeconds, waiting: [], isLeasing: false }
      windows[name].set(subject, window)
    } else if (now >= window.endsAt) {
      Object.assign(window, unleased)
    }
    return window
  }

  async function lease(
    { name, quota, windowSeconds }: Policy,
    subject: string,
    request: Pick<LeaseRequest, 'wanted' | 'waiting' | 'report'>,
  ): Promise<QuotaLease> {
    return await quotas.leaseQuota({ policy: name, subject, quota, windowSeconds, ...request })
  }

  async function leaseOrFallBack(
    window: LeasedWindow,
    policy: Policy,
    subject: string,
    waiting: number,
  ): Promise<QuotaLease> {
    const { term, used, remaining: left = policy.quota, endsAt } = window
    // Reported once: the window may end, or its policy change, during the lease.
    window.used = 0
    const portion = Math.floor(policy.quota * heldShare / replicas())
    try {
      const wanted = Math.max(portion, waiting)
      const leased = await lease(policy, subject, { wanted, waiting, report: { term, used } })
      window.used -= Math.min(leased.granted, waiting)
      return leased
    } catch (error) {
      window.used += used
      if (!localFallback) throw error
      const share = Math.min(left, Math.max(1, Math.floor(policy.quota / replicas())))
      const resetMs = Math.min(policy.windowSeconds * 1000, endsAt - elapsed())
      return { granted: share, remaining: 0, resetMs, term: unleased.term }
    }
  }

  /** One lease at a time: requests that arrive meanwhile wait for the next one together. */
  async function serveWaiting(window: LeasedWindow, policy: Policy, subject: string): Promise<void> {
    window.isLeasing = true
    for (let served = window.waiting; served.length > 0; served = window.waiting) {
      window.waiting = []
      const askedAt = elapsed()
      if (askedAt >= window.endsAt) Object.assign(window, unleased)
      // What an earlier lease left over is used first: otherwise more than the share would be held.
      const missing = served.length - window.held
      try {
        if (missing > 0 && window.remaining !== 0) {
          const { granted, remaining, resetMs, term } = await leaseOrFallBack(
            window,
            policy,
            subject,
            missing,
          )
          // A lease of an earlier term is not valid any more.
          window.held = (term === window.term ? window.held : 0) + granted
          window.term = term
          window.remaining = remaining
          window.endsAt = askedAt + resetMs
        }
        for (const waiter of served) {
          // Requests that arrived meanwhile may have taken what was held.
          if (window.held > 0 || window.remaining === 0) waiter.resolve(take(window, policy, askedAt))
          else window.waiting.push(waiter)
        }
      } catch (error) {
        for (const { reject } of served) reject(error)
      }
    }
    window.isLeasing = false
  }

  function take(window: LeasedWindow, policy: Policy, now: number): RateLimitState {
    const allowed = window.held > 0
    if (allowed) {
      window.held--
      window.used++
    }
    decisions[policy.name][allowed ? 'allowed' : 'refused']++
    return rateLimitState(policy, allowed, window.held + (window.remaining ?? 0), window.endsAt - now)
  }

  function peekLocal(policy: Policy, subject: string, now: number): RateLimitState {
    if (isLocal(policy)) return local.peekLocal(policy, subject, now)
    const window = windows[policy.name].get(subject)
    if (window === undefined || window.remaining === undefined || now >= window.endsAt) {
      return { allowed: true, remaining: policy.quota, resetSeconds: policy.windowSeconds }
    }
    const remaining = window.held + window.remaining
    return rateLimitState(policy, remaining > 0, remaining, window.endsAt - now)
  }

  return {
    consume(policy, subject, now) {
      if (isLocal(policy)) return local.consume(policy, subject, now)
      const window = windowOf(policy, subject, now)
      if (window.held > 0 || window.remaining === 0) return take(window, policy, now)
      return new Promise((resolve, reject) => {
        window.waiting.push({ resolve, reject })
        if (!window.isLeasing) void serveWaiting(window, policy, subject)
      })
    },

    async peek(policy, subject, now) {
      if (isLocal(policy)) return local.peek(policy, subject, now)
      try {
        const { remaining: unleased, resetMs } = await lease(policy, subject, { wanted: 0 })
        const remaining = unleased + windowOf(policy, subject, now).held
        return rateLimitState(policy, remaining > 0, remaining, resetMs)
      } catch {
        return peekLocal(policy, subject, now)
      }
    },

    peekLocal,
    decisions,

    async close() {
      const returns: QuotaReturn[] = []
      for (const policy of LIMIT_NAMES) {
        for (const [subject, window] of windows[policy].entries()) {
          const { term, used, held: unused, endsAt } = window
          const isLeased = term !== unleased.term && used + unused > 0 && elapsed() < endsAt
          if (isLeased) returns.push({ policy, subject, term, used, unused })
          window.used = window.held = 0
        }
      }
      try {
        while (returns.length > 0) await quotas.returnQuotas(returns.splice(0, maxReturnsAtOnce))
      } catch {
        // Like the leases of a process that was killed, they stay unused until their windows end.
      }
    },
  }
}

/**
 * The window of a subject, as far as this process knows it. It is
 * - unleased at first, and again when its time is over: requests wait for a lease.
 * - leased while `held` is above 0: requests use that.
 * - used up when `held` is 0: requests wait for the next lease.
 * - spent when `remaining` is 0, too: requests are refused until its time is over.
 */
interface LeasedWindow extends Pick<Policy, 'quota' | 'windowSeconds'> {
  /** Requests that were leased and not yet used. */
  held: number
  /** Requests that were leased, used, and not yet reported. */
  used: number
  /** Of the last lease; 0 before the first. */
  term: number
  /** What the last lease left in the quota store; `undefined` before the first lease in this window. */
  remaining: number | undefined
  /** Never later than in the quota store. */
  endsAt: number
  waiting: {
    resolve(state: RateLimitState): void
    reject(error: unknown): void
  }[]
  isLeasing: boolean
}

const unleased = { held: 0, used: 0, term: 0, remaining: undefined, endsAt: Infinity }
