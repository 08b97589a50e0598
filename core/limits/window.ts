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
      if (window === undefined) known.set(subject, window = { count: 0, openedAt: now })
      else if (isOver(window, policy, now)) {
        window.count = 0
        window.openedAt = now
      }
      const allowed = window.count < policy.quota
      if (allowed) window.count++
      return allowance(policy, window, now, allowed)
    },
    peek(policy, subject, now) {
      const window = windows[policy.name].get(subject)
      if (window === undefined || isOver(window, policy, now)) {
        return { allowed: true, remaining: policy.quota, resetSeconds: policy.windowSeconds }
      }
      return allowance(policy, window, now, window.count < policy.quota)
    },
  }
}

interface Window {
  count: number
  openedAt: number
}

/** A policy that was changed binds a window that is open. */
function isOver(window: Window, policy: Policy, now: number): boolean {
  return now >= window.openedAt + policy.windowSeconds * 1000
}

function allowance(policy: Policy, window: Window, now: number, allowed: boolean): Allowance {
  return {
    allowed,
    remaining: Math.max(0, policy.quota - window.count),
    // Counted from the opening: rounded up from the end, fractions would make 61 seconds of 60.
    resetSeconds: Math.max(1, policy.windowSeconds - Math.floor((now - window.openedAt) / 1000)),
  }
}
