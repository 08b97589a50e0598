import { createLruCache, type LruCache } from '../lib/lru.ts'
import type { LimitName } from '../model.ts'
import type { QuotaLease, QuotaStore } from '../ports/quotas.ts'
import { type Limiter, type RateLimitState, rateLimitState } from './limiter.ts'
import type { Policy } from './policies.ts'

/** What the replicas hold of a quota without having used it comes to this part of it at most. */
const HELD_SHARE = 0.02

/** Where a replica stands among the others. */
export interface SharedLimiterOptions {
  /** How many replicas there are, 1 or more. */
  replicas(): number
  /** Milliseconds on the clock of `spend`. */
  elapsed(): number
  /** Whether a replica that can't ask the ledger goes on with its part of each quota instead of failing. */
  readonly localFallback: boolean
  /** How many windows of a policy are remembered, default 200,000; those not asked for longest are forgotten first. */
  readonly maxWindows?: number
}

/**
 * Counts with other replicas: each takes portions of a quota out of the ledger and spends them without asking anybody.
 * A portion is so small that what all replicas hold unused is 2 % of the quota at most; never more than the quota
 * passes in a window. A quota that is spent costs no question until its window is over.
 */
export function createSharedLimiter(quotas: QuotaStore, options: SharedLimiterOptions): Limiter {
  const { replicas, elapsed, localFallback, maxWindows = 200_000 } = options
  const windows: Readonly<Record<LimitName, LruCache<LeasedWindow>>> = {
    key: createLruCache(maxWindows),
    signup: createLruCache(maxWindows),
    verify: createLruCache(maxWindows),
    authfail: createLruCache(maxWindows),
  }

  /** The window as far as it is known. */
  function windowOf({ name, quota, windowSeconds }: Policy, subject: string, now: number): LeasedWindow {
    let window = windows[name].get(subject)
    if (window === undefined || quota !== window.quota || windowSeconds !== window.windowSeconds) {
      // Another one for a policy that was changed: what is under way for the old one tells nothing of the new one.
      windows[name].set(
        subject,
        window = { ...unleased, quota, windowSeconds, waiting: [], isLeasing: false },
      )
    } else if (now >= window.endsAt) {
      Object.assign(window, unleased)
    }
    return window
  }

  async function leaseFor(policy: Policy, subject: string, wanted: number): Promise<QuotaLease> {
    const { name, quota, windowSeconds } = policy
    try {
      return await quotas.leaseQuota({ policy: name, subject, quota, windowSeconds, wanted })
    } catch (error) {
      if (!localFallback) throw error
      const share = Math.max(1, Math.floor(quota / replicas()))
      return { granted: share, remaining: 0, resetMs: windowSeconds * 1000 }
    }
  }

  /** One question at a time; who comes meanwhile is asked for together with the next. */
  async function serveWaiting(window: LeasedWindow, policy: Policy, subject: string): Promise<void> {
    window.isLeasing = true
    for (let served = window.waiting; served.length > 0; served = window.waiting) {
      window.waiting = []
      const askedAt = elapsed()
      if (askedAt >= window.endsAt) Object.assign(window, unleased)
      const missing = served.length - window.held
      try {
        // What was taken for those before them may do for these: more would be held than the share.
        if (missing > 0 && window.left !== 0) {
          const portion = Math.floor(policy.quota * HELD_SHARE / replicas())
          const { granted, remaining, resetMs } = await leaseFor(policy, subject, Math.max(portion, missing))
          window.held += granted
          window.left = remaining
          window.endsAt = askedAt + resetMs
        }
        for (const waiting of served) {
          // Somebody may have come meanwhile and found what was held.
          if (window.held > 0 || window.left === 0) waiting.resolve(take(window, policy, askedAt))
          else window.waiting.push(waiting)
        }
      } catch (error) {
        for (const { reject } of served) reject(error)
      }
    }
    window.isLeasing = false
  }

  function peekLocal(policy: Policy, subject: string, now: number): RateLimitState {
    const window = windows[policy.name].get(subject)
    if (window === undefined || window.left === undefined || now >= window.endsAt) {
      return { allowed: true, remaining: policy.quota, resetSeconds: policy.windowSeconds }
    }
    const remaining = window.held + window.left
    return rateLimitState(policy, remaining > 0, remaining, window.endsAt - now)
  }

  return {
    consume(policy, subject, now) {
      const window = windowOf(policy, subject, now)
      if (window.held > 0 || window.left === 0) return take(window, policy, now)
      return new Promise((resolve, reject) => {
        window.waiting.push({ resolve, reject })
        if (!window.isLeasing) void serveWaiting(window, policy, subject)
      })
    },

    async peek(policy, subject, now) {
      const { name, quota, windowSeconds } = policy
      try {
        const { remaining, resetMs } = await quotas.leaseQuota({
          policy: name,
          subject,
          quota,
          windowSeconds,
          wanted: 0,
        })
        const left = remaining + windowOf(policy, subject, now).held
        return rateLimitState(policy, left > 0, left, resetMs)
      } catch {
        return peekLocal(policy, subject, now)
      }
    },

    peekLocal,
  }
}

interface LeasedWindow {
  quota: number
  windowSeconds: number
  /** Requests that were taken out of the ledger and not yet used. */
  held: number
  /** What the ledger had left when it was asked last; `undefined` when it was not asked in this window. */
  left: number | undefined
  /** Never later than the ledger has it. */
  endsAt: number
  waiting: Waiter[]
  isLeasing: boolean
}

interface Waiter {
  resolve(allowance: RateLimitState): void
  reject(error: unknown): void
}

const unleased = { held: 0, left: undefined, endsAt: Infinity }

function take(window: LeasedWindow, policy: Policy, now: number): RateLimitState {
  const allowed = window.held > 0
  if (allowed) window.held--
  return rateLimitState(policy, allowed, window.held + (window.left ?? 0), window.endsAt - now)
}
