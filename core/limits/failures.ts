import type { Limiter } from './limiter.ts'
import type { Policy } from './policies.ts'

/** Counts refused credentials against the addresses that they come from. `now` is the limiter's clock. */
export interface Failures {
  /** Whether any was counted within a window: most services see none for long, and then no address matters. */
  areRecent(now: number): boolean
  /** Whole seconds for which an address is only heard with a key that is known; `undefined` when it may try. */
  blockedFor(subject: string | undefined, now: number): number | undefined
  /** Counts a failure. An address that nobody knows is not counted. Never rejects. */
  count(subject: string | undefined, now: number): Promise<unknown> | undefined
}

/** @param policy Absent: failures are not counted. */
export function createFailures(limiter: Limiter, policy: Policy | undefined): Failures {
  let countedLastAt = -Infinity

  return {
    areRecent: (now) => policy !== undefined && now - countedLastAt < policy.windowSeconds * 1000,

    blockedFor(subject, now) {
      if (policy === undefined || subject === undefined) return undefined
      const { remaining, resetSeconds } = limiter.recall(policy, subject, now)
      return remaining === 0 ? resetSeconds : undefined
    },

    count(subject, now) {
      if (policy === undefined || subject === undefined) return undefined
      countedLastAt = now
      const counted = limiter.spend(policy, subject, now)
      // A failure that could not be counted is refused all the same.
      return counted instanceof Promise ? counted.catch(() => undefined) : undefined
    },
  }
}
