import { type BoundedMap, createBoundedMap } from '../cache/bounded.ts'
import type { LimitName } from '../model.ts'
import type { QuotaLease, QuotaLedger } from './ledger.ts'
import { type Allowance, allowance, type Limiter } from './limiter.ts'
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
  readonly standsAlone: boolean
  /** How many windows of a policy are remembered, default 200,000; those not asked for longest are forgotten first. */
  readonly maxWindows?: number
}

/**
 * Counts with other replicas: each takes portions of a quota out of the ledger and spends them without asking anybody.
 * A portion is so small that what all replicas hold unused is 2 % of the quota at most; never more than the quota
 * passes in a window. A quota that is spent costs no question until its window is over.
 */
export function createSharedLimiter(ledger: QuotaLedger, options: SharedLimiterOptions): Limiter {
  const { replicas, elapsed, standsAlone, maxWindows = 200_000 } = options
  const windows: Readonly<Record<LimitName, BoundedMap<Window>>> = {
    key: createBoundedMap(maxWindows),
    signup: createBoundedMap(maxWindows),
    verify: createBoundedMap(maxWindows),
    authfail: createBoundedMap(maxWindows),
  }

  /** The window as far as it is known. */
  function windowOf({ name, quota, windowSeconds }: Policy, subject: string, now: number): Window {
    let window = windows[name].get(subject)
    if (window === undefined || quota !== window.quota || windowSeconds !== window.windowSeconds) {
      // Another one for a policy that was changed: what is under way for the old one tells nothing of the new one.
      windows[name].set(subject, window = { ...unknown, quota, windowSeconds, waiting: [], asking: false })
    } else if (now >= window.endsAt) {
      Object.assign(window, unknown)
    }
    return window
  }

  async function leaseFor(policy: Policy, subject: string, wanted: number): Promise<QuotaLease> {
    const { name, quota, windowSeconds } = policy
    try {
      return await ledger.leaseQuota({ policy: name, subject, quota, windowSeconds, wanted })
    } catch (error) {
      if (!standsAlone) throw error
      const part = Math.max(1, Math.floor(quota / replicas()))
      return { granted: part, remaining: 0, resetMs: windowSeconds * 1000 }
    }
  }

  /** One question at a time; who comes meanwhile is asked for together with the next. */
  async function serveWaiting(window: Window, policy: Policy, subject: string): Promise<void> {
    window.asking = true
    for (let served = window.waiting; served.length > 0; served = window.waiting) {
      window.waiting = []
      const askedAt = elapsed()
      if (askedAt >= window.endsAt) Object.assign(window, unknown)
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
    window.asking = false
  }

  function recall(policy: Policy, subject: string, now: number): Allowance {
    const window = windows[policy.name].get(subject)
    if (window === undefined || window.left === undefined || now >= window.endsAt) {
      return { allowed: true, remaining: policy.quota, resetSeconds: policy.windowSeconds }
    }
    const remaining = window.held + window.left
    return allowance(policy, remaining > 0, remaining, window.endsAt - now)
  }

  return {
    spend(policy, subject, now) {
      const window = windowOf(policy, subject, now)
      if (window.held > 0 || window.left === 0) return take(window, policy, now)
      return new Promise((resolve, reject) => {
        window.waiting.push({ resolve, reject })
        if (!window.asking) void serveWaiting(window, policy, subject)
      })
    },

    async peek(policy, subject, now) {
      const { name, quota, windowSeconds } = policy
      try {
        const { remaining, resetMs } = await ledger.leaseQuota({
          policy: name,
          subject,
          quota,
          windowSeconds,
          wanted: 0,
        })
        const left = remaining + windowOf(policy, subject, now).held
        return allowance(policy, left > 0, left, resetMs)
      } catch {
        return recall(policy, subject, now)
      }
    },

    recall,
  }
}

interface Window {
  quota: number
  windowSeconds: number
  /** Requests that were taken out of the ledger and not yet used. */
  held: number
  /** What the ledger had left when it was asked last; `undefined` when it was not asked in this window. */
  left: number | undefined
  /** Never later than the ledger has it. */
  endsAt: number
  waiting: Waiting[]
  asking: boolean
}

interface Waiting {
  resolve(allowance: Allowance): void
  reject(error: unknown): void
}

const unknown = { held: 0, left: undefined, endsAt: Infinity }

function take(window: Window, policy: Policy, now: number): Allowance {
  const allowed = window.held > 0
  if (allowed) window.held--
  return allowance(policy, allowed, window.held + (window.left ?? 0), window.endsAt - now)
}
