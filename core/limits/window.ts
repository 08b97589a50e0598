import { type BoundedMap, createBoundedMap } from '../cache/bounded.ts'
import type { LimitName } from '../model.ts'
import type { Policy } from './policies.ts'

/** What is left of a quota. */
export interface Allowance {
  /** Whether the request that was counted is within the quota. */
  readonly allowed: boolean
  /** Requests left in the window, 0 or more. */
  readonly remaining: number
  /** Whole seconds until the quota is whole again, 1 or more. */
  readonly resetSeconds: number
}

/** Counts requests against policies, in memory. */
export interface Limiter {
  /**
   * Counts a request of `subject` (a key's id, an address).
   * @param now Milliseconds on a clock that is never set back.
   */
  spend(policy: Policy, subject: string, now: number): Allowance
  /** What a request would meet, without counting one. */
  peek(policy: Policy, subject: string, now: number): Allowance
}

/**
 * Windows of fixed length, each opened by the first request that finds none open: exactly the quota passes in
 * one.
 *
 * @param maxWindows How many windows of a policy are remembered; those not asked for longest are forgotten first.
 */
export function createLimiter(maxWindows = 200_000): Limiter {
  const windows: Readonly<Record<LimitName, BoundedMap<Window>>> = {
    key: createBoundedMap(maxWindows),
    signup: createBoundedMap(maxWindows),
    verify: createBoundedMap(maxWindows),
    authfail: createBoundedMap(maxWindows),
  }

  return {
    spend(policy, subject, now) {
      const known = windows[policy.name]
      let window = known.get(subject)
      if (window === undefined) known.set(subject, window = { count: 0, endsAt: 0 })
      if (now >= window.endsAt) {
        window.count = 0
        window.endsAt = now + policy.windowSeconds * 1000
      }
      const allowed = window.count < policy.quota
      if (allowed) window.count++
      return allowance(policy, window, now, allowed)
    },
    peek(policy, subject, now) {
      const window = windows[policy.name].get(subject)
      if (window === undefined || now >= window.endsAt) {
        return { allowed: true, remaining: policy.quota, resetSeconds: policy.windowSeconds }
      }
      return allowance(policy, window, now, window.count < policy.quota)
    },
  }
}

interface Window {
  count: number
  endsAt: number
}

/** A quota that was lowered binds a window that is open. */
function allowance(policy: Policy, window: Window, now: number, allowed: boolean): Allowance {
  const remaining = policy.quota - window.count
  return {
    allowed,
    remaining: remaining > 0 ? remaining : 0,
    resetSeconds: Math.max(1, Math.ceil((window.endsAt - now) / 1000)),
  }
}
