import type { MaybePromise } from '../lib/promise.ts'
import { type Limiter, retryAfterSeconds } from './limiter.ts'
import type { Policy } from './policies.ts'

/** Refused credentials, counted by the addresses that they come from. */
export interface FailedAuthentications {
  /** Whether any failure was counted within a window. If not, the caller need not determine the address. */
  hasRecent(now: number): boolean
  /** Whether none was counted, by no other process either. */
  hasNone(now: number): boolean
  /** Whole seconds for which only known keys of the address are accepted; `undefined` when it is not blocked. */
  blockedSeconds(subject: string | undefined, now: number): number | undefined
  /**
   * Counts a failure. Never rejects.
   * @returns Whole seconds to wait when the quota was spent before; `undefined` when the failure was within it.
   */
  count(subject: string | undefined, now: number): MaybePromise<number | undefined>
  /**
   * Starts a look-up for an address that is not blocked. Until it ends it counts as a failure, so that an address
   * never has more pending look-ups than failures left.
   * @returns `undefined` when it may start at once; else a promise that resolves when it may, after other look-ups
   * ended, and rejects when the store fails them.
   */
  beginLookup(subject: string | undefined, now: number): Promise<void> | undefined
  /**
   * Ends a look-up, after its failure was counted if it was one.
   * @param error Why the store could not decide it.
   */
  endLookup(subject: string | undefined, now: number, error?: unknown): void
}

/** The look-ups of an address. */
interface AddressLookups {
  active: number
  readonly waiting: Set<PromiseWithResolvers<void>>
}

/**
 * Counts refused credentials against the addresses that they come from. An unknown address (`subject` is `undefined`)
 * is neither counted nor blocked, and without a policy none is.
 *
 * @param givenClock The clock that windows follow in place of `now`.
 */
export function createFailedAuthentications(
  limiter: Limiter,
  policy: Policy | undefined,
  givenClock?: () => number,
): FailedAuthentications {
  const windowTime = (now: number): number => givenClock?.() ?? now
  let lastFailureAt = -Infinity
  const lookupsByAddress = new Map<string, AddressLookups>()

  const hasRecent = (now: number): boolean =>
    policy !== undefined && windowTime(now) - lastFailureAt < policy.windowSeconds * 1000

  return {
    hasRecent,

    hasNone: (now) => policy !== undefined && limiter.isLocal(policy) && !hasRecent(now),

    blockedSeconds(subject, now) {
      if (policy === undefined || subject === undefined) return undefined
      const { remaining, resetSeconds } = limiter.peekLocal(policy, subject, now)
      return remaining === 0 ? resetSeconds : undefined
    },

    count(subject, now) {
      if (policy === undefined || subject === undefined) return undefined
      lastFailureAt = windowTime(now)
      const counted = limiter.consume(policy, subject, now)
      // A failure that could not be counted is still refused.
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
        // Once the address is blocked, all of them may continue, only to be refused.
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
