import type { MaybePromise } from '../lib/promise.ts'
import type { Limiter, RateLimitState } from './limiter.ts'
import type { Policy } from './policies.ts'

/** Counts refused credentials against the addresses that they come from. `now` is the limiter's clock. */
export interface FailedAuthentications {
  /** Whether any was counted within a window: most services see none for long, and then no address matters. */
  hasRecent(now: number): boolean
  /** Whole seconds for which an address is only heard with a key that is known; `undefined` when it may try. */
  blockedSeconds(subject: string | undefined, now: number): number | undefined
  /**
   * Counts a failure. An address that nobody knows is not counted. Never rejects.
   * @returns Whole seconds to wait when the quota was spent before; `undefined` when the failure was within it.
   */
  count(subject: string | undefined, now: number): MaybePromise<number | undefined>
  /**
   * Begins a look-up for an address that is not blocked. While it is undecided it counts as a failure, so that an
   * address never has more of them under way than it may still fail.
   * @returns `undefined` when it has begun; else a promise that resolves when it has, once others were decided, and
   * that rejects when the store does not answer them.
   */
  beginLookup(subject: string | undefined, now: number): Promise<void> | undefined
  /**
   * Ends a look-up that has begun, after its failure was counted if it was one.
   * @param error Why it could not be decided.
   */
  endLookup(subject: string | undefined, now: number, error?: unknown): void
}

/** The look-ups of an address. */
interface AddressLookups {
  active: number
  readonly waiting: Set<PromiseWithResolvers<void>>
}

/** @param policy Absent: failures are not counted. */
export function createFailedAuthentications(
  limiter: Limiter,
  policy: Policy | undefined,
): FailedAuthentications {
  let lastFailureAt = -Infinity
  const lookupsByAddress = new Map<string, AddressLookups>()

  return {
    hasRecent: (now) => policy !== undefined && now - lastFailureAt < policy.windowSeconds * 1000,

    blockedSeconds(subject, now) {
      if (policy === undefined || subject === undefined) return undefined
      const { remaining, resetSeconds } = limiter.peekLocal(policy, subject, now)
      return remaining === 0 ? resetSeconds : undefined
    },

    count(subject, now) {
      if (policy === undefined || subject === undefined) return undefined
      lastFailureAt = now
      const counted = limiter.consume(policy, subject, now)
      // A failure that could not be counted is refused all the same.
      return counted instanceof Promise
        ? counted.then(retryAfterSeconds, () => undefined)
        : retryAfterSeconds(counted)
    },

    beginLookup(subject, now) {
      if (policy === undefined || subject === undefined) return undefined
      let lookups = lookupsByAddress.get(subject)
      if (lookups === undefined) lookupsByAddress.set(subject, lookups = { active: 0, waiting: new Set() })
      if (lookups.active < limiter.peekLocal(policy, subject, now).remaining) {
        lookups.active++
        return undefined
      }
      const turn = Promise.withResolvers<void>()
      lookups.waiting.add(turn)
      return turn.promise
    },

    endLookup(subject, now, error) {
      const lookups = subject === undefined ? undefined : lookupsByAddress.get(subject)
      if (policy === undefined || subject === undefined || lookups === undefined) return
      lookups.active--
      const { remaining } = limiter.peekLocal(policy, subject, now)
      for (const turn of lookups.waiting) {
        // Once the address is blocked, all may go on: to be refused.
        if (error === undefined && remaining > 0 && lookups.active >= remaining) break
        lookups.waiting.delete(turn)
        if (error !== undefined) turn.reject(error)
        else {
          lookups.active++
          turn.resolve()
        }
      }
      if (lookups.active === 0) lookupsByAddress.delete(subject)
    },
  }
}

function retryAfterSeconds({ allowed, resetSeconds }: RateLimitState): number | undefined {
  return allowed ? undefined : resetSeconds
}
