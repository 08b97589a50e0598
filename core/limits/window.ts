import { type BoundedMap, createBoundedMap } from '../cache/bounded.ts'
import type { LimitName } from '../model.ts'
import { type Allowance, allowance, type Limiter } from './limiter.ts'
import type { Policy } from './policies.ts'

/** A limiter that has nobody to ask. */
export interface LocalLimiter extends Limiter {
  spend(policy: Policy, subject: string, now: number): Allowance
  peek(policy: Policy, subject: string, now: number): Allowance
}

/**
 * Counts in memory. Windows of fixed length, each opened by the first request that finds none open: exactly the quota
 * passes in one.
 *
 * @param maxWindows How many windows of a policy are remembered; those not asked for longest are forgotten first.
 */
export function createLimiter(maxWindows = 200_000): LocalLimiter {
  const windows: Readonly<Record<LimitName, BoundedMap<Window>>> = {
    key: createBoundedMap(maxWindows),
    signup: createBoundedMap(maxWindows),
    verify: createBoundedMap(maxWindows),
    authfail: createBoundedMap(maxWindows),
  }

  function peek(policy: Policy, subject: string, now: number): Allowance {
    const window = windows[policy.name].get(subject)
    if (window === undefined || now >= endOf(window, policy)) {
      return { allowed: true, remaining: policy.quota, resetSeconds: policy.windowSeconds }
    }
    return left(policy, window, now, window.count < policy.quota)
  }

  return {
    spend(policy, subject, now) {
      const known = windows[policy.name]
      let window = known.get(subject)
      if (window === undefined) known.set(subject, window = { count: 0, openedAt: now })
      else if (now >= endOf(window, policy)) {
        window.count = 0
        window.openedAt = now
      }
      const allowed = window.count < policy.quota
      if (allowed) window.count++
      return left(policy, window, now, allowed)
    },
    peek,
    recall: peek,
  }
}

interface Window {
  count: number
  openedAt: number
}

/** A policy that was changed binds a window that is open. */
function endOf(window: Window, policy: Policy): number {
  return window.openedAt + policy.windowSeconds * 1000
}

function left(policy: Policy, window: Window, now: number, allowed: boolean): Allowance {
  return allowance(policy, allowed, policy.quota - window.count, endOf(window, policy) - now)
}
