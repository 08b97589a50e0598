import type { MaybePromise } from '../ports.ts'
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

/** Counts requests against policies. `now` is milliseconds on a clock that is never set back. */
export interface Limiter {
  /**
   * Counts a request of `subject` (a key's id, an address).
   * @throws when others count too and can't be asked.
   */
  spend(policy: Policy, subject: string, now: number): MaybePromise<Allowance>
  /** What a request would meet, without counting one. */
  peek(policy: Policy, subject: string, now: number): MaybePromise<Allowance>
  /** The same as far as it is known here, without asking anybody. */
  recall(policy: Policy, subject: string, now: number): Allowance
}

/** What a quota is with `remaining` requests left, in a window that ends in `resetMs`. */
export function allowance(policy: Policy, allowed: boolean, remaining: number, resetMs: number): Allowance {
  const { windowSeconds } = policy
  // Counted from the opening: rounded up from the end, fractions would make 61 seconds of 60.
  const openForMs = Math.max(0, windowSeconds * 1000 - resetMs)
  return {
    allowed,
    remaining: Math.max(0, remaining),
    resetSeconds: Math.max(1, windowSeconds - Math.floor(openForMs / 1000)),
  }
}
