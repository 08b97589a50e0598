import type { QuotaLease, QuotaStore } from '../ports/quotas.ts'
import {
  createDecisions,
  createWindows,
  type Limiter,
  type RateLimitState,
  rateLimitState,
} from './limiter.ts'
import type { Policy } from './policies.ts'

/** The largest part of a quota that all replicas together hold without having used it. */
const heldShare = 0.02

/**
 * Counts together with other replicas: each leases portions of a quota from the quota store and spends them by itself.
 * Never more than the quota passes in a window, and at most 2 % of it stays unused in leases.
 *
 * @param options.localFallback Whether to use this replica's share of each quota, instead of failing, while the quota
 * store does not respond.
 */
export function createSharedLimiter(
  quotas: QuotaStore,
  options: { replicas(): number; elapsed(): number; readonly localFallback: boolean },
): Limiter {
  const { replicas, elapsed, localFallback } = options
  const windows = createWindows<LeasedWindow>()
  const decisions = createDecisions()

  /** The window as far as this process knows it. */
  function windowOf({ name, quota, windowSeconds }: Policy, subject: string, now: number): LeasedWindow {
    let window = windows[name].get(subject)
    if (window === undefined || quota !== window.quota || windowSeconds !== window.windowSeconds) {
      // A changed policy gets a new window: a pending lease under the old numbers does not apply to it.
      window = { ...unleased, quota, windowSeconds, waiting: [], isLeasing: false }
      windows[name].set(subject, window)
    } else if (now >= window.endsAt) {
      Object.assign(window, unleased)
    }
    return window
  }

  async function lease({ name, quota, windowSeconds }: Policy, subject: string, wanted: number) {
    return await quotas.leaseQuota({ policy: name, subject, quota, windowSeconds, wanted })
  }

  async function leaseOrFallBack(policy: Policy, subject: string, wanted: number): Promise<QuotaLease> {
    try {
      return await lease(policy, subject, wanted)
    } catch (error) {
      if (!localFallback) throw error
      const share = Math.max(1, Math.floor(policy.quota / replicas()))
      return { granted: share, remaining: 0, resetMs: policy.windowSeconds * 1000 }
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
          const portion = Math.floor(policy.quota * heldShare / replicas())
          const wanted = Math.max(portion, missing)
          const { granted, remaining, resetMs } = await leaseOrFallBack(policy, subject, wanted)
          window.held += granted
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
    if (allowed) window.held--
    decisions[policy.name][allowed ? 'allowed' : 'refused']++
    return rateLimitState(policy, allowed, window.held + (window.remaining ?? 0), window.endsAt - now)
  }

  function peekLocal(policy: Policy, subject: string, now: number): RateLimitState {
    const window = windows[policy.name].get(subject)
    if (window === undefined || window.remaining === undefined || now >= window.endsAt) {
      return { allowed: true, remaining: policy.quota, resetSeconds: policy.windowSeconds }
    }
    const remaining = window.held + window.remaining
    return rateLimitState(policy, remaining > 0, remaining, window.endsAt - now)
  }

  return {
    consume(policy, subject, now) {
      const window = windowOf(policy, subject, now)
      if (window.held > 0 || window.remaining === 0) return take(window, policy, now)
      return new Promise((resolve, reject) => {
        window.waiting.push({ resolve, reject })
        if (!window.isLeasing) void serveWaiting(window, policy, subject)
      })
    },

    async peek(policy, subject, now) {
      try {
        const { remaining: unleased, resetMs } = await lease(policy, subject, 0)
        const remaining = unleased + windowOf(policy, subject, now).held
        return rateLimitState(policy, remaining > 0, remaining, resetMs)
      } catch {
        return peekLocal(policy, subject, now)
      }
    },

    peekLocal,
    decisions,
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

const unleased = { held: 0, remaining: undefined, endsAt: Infinity }
