import type { MaybePromise, Revision } from '../ports.ts'

/** Keeps knowing the revision, so that nothing older than the bound is ever used. */
export interface Freshness {
  /**
   * A revision that was current no longer than the bound ago. The object stays the same for as long as
   * nothing was changed.
   * @param now Milliseconds on a clock that is never set back.
   * @throws what the source threw, when the revision can't be confirmed within the bound.
   */
  confirm(now: number): MaybePromise<Revision>
}

/**
 * From half the bound on, a request that comes asks the source again; it waits for the answer only when the
 * bound has passed. A confirmation counts from the moment it was asked for.
 *
 * @param source Reads the revision.
 * @param maxStalenessMs Milliseconds, 0–10,000; 0 asks for every request.
 * @param onChange Called when a revision turns out to be another than the one before.
 */
export function createFreshness(
  source: () => MaybePromise<Revision>,
  maxStalenessMs: number,
  onChange: () => void = () => undefined,
): Freshness {
  let current: Revision | undefined
  let confirmedAt = -Infinity
  let pending: Promise<Revision> | undefined
  let pendingSince = -Infinity

  function settle(revision: Revision, askedAt: number): Revision {
    if (current === undefined || current.facts !== revision.facts || current.content !== revision.content) {
      if (askedAt >= confirmedAt) {
        current = revision
        onChange()
      }
    }
    if (askedAt > confirmedAt) confirmedAt = askedAt
    return current ?? revision
  }

  function ask(now: number): MaybePromise<Revision> {
    const answer = source()
    if (!(answer instanceof Promise)) return settle(answer, now)
    const asked: Promise<Revision> = answer.then((revision) => settle(revision, now)).finally(() => {
      if (pending === asked) pending = undefined
    })
    pending = asked
    pendingSince = now
    return asked
  }

  return {
    confirm(now) {
      const age = now - confirmedAt
      if (current !== undefined && age < maxStalenessMs) {
        if (age < maxStalenessMs / 2 || pending !== undefined) return current
        try {
          const asked = ask(now)
          if (!(asked instanceof Promise)) return asked
          asked.catch(() => undefined)
        } catch {
          // The bound has not passed: what is known may still be used, and the next request asks again.
        }
        return current
      }
      return pending !== undefined && now - pendingSince < maxStalenessMs ? pending : ask(now)
    },
  }
}
