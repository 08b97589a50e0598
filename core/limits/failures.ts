import type { MaybePromise } from '../ports.ts'
import type { Allowance, Limiter } from './limiter.ts'
import type { Policy } from './policies.ts'

/** Counts refused credentials against the addresses that they come from. `now` is the limiter's clock. */
export interface Failures {
  /** Whether any was counted within a window: most services see none for long, and then no address matters. */
  areRecent(now: number): boolean
  /** Whole seconds for which an address is only heard with a key that is known; `undefined` when it may try. */
  blockedFor(subject: string | undefined, now: number): number | undefined
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
  begin(subject: string | undefined, now: number): Promise<void> | undefined
  /**
   * Ends a look-up that has begun, after its failure was counted if it was one.
   * @param error Why it could not be decided.
   */
  end(subject: string | undefined, now: number, error?: unknown): void
}

/** The look-ups of an address. */
interface LookUps {
  underWay: number
  readonly waiting: Set<PromiseWithResolvers<void>>
}

/** @param policy Absent: failures are not counted. */
export function createFailures(limiter: Limiter, policy: Policy | undefined): Failures {
  let countedLastAt = -Infinity
  const lookUps = new Map<string, LookUps>()

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
      return counted instanceof Promise ? counted.then(secondsOver, () => undefined) : secondsOver(counted)
    },

    begin(subject, now) {
      if (policy === undefined || subject === undefined) return undefined
      let own = lookUps.get(subject)
      if (own === undefined) lookUps.set(subject, own = { underWay: 0, waiting: new Set() })
      if (own.underWay < limiter.recall(policy, subject, now).remaining) {
        own.underWay++
        return undefined
      }
      const turn = Promise.withResolvers<void>()
      own.waiting.add(turn)
      return turn.promise
    },

    end(subject, now, error) {
      const own = subject === undefined ? undefined : lookUps.get(subject)
      if (policy === undefined || subject === undefined || own === undefined) return
      own.underWay--
      const { remaining } = limiter.recall(policy, subject, now)
      for (const turn of own.waiting) {
        // Once the address is blocked, all may go on: to be refused.
        if (error === undefined && remaining > 0 && own.underWay >= remaining) break
        own.waiting.delete(turn)
        if (error !== undefined) turn.reject(error)
        else {
          own.underWay++
          turn.resolve()
        }
      }
      if (own.underWay === 0) lookUps.delete(subject)
    },
  }
}

function secondsOver({ allowed, resetSeconds }: Allowance): number | undefined {
  return allowed ? undefined : resetSeconds
}
