import type { MaybePromise, Revision } from '../ports.ts'

/** Keeps knowing the revision, so that nothing older than the bound is ever used. */
export interface Freshness {
  /**
   * A revision that was current no longer than the bound ago. The object stays the same for as long as
   * nothing was changed.
   * @param now Milliseconds on a clock that is never set back.
   * @param date Milliseconds on the calendar, for whoever has looked already.
   * @throws what the source threw, when the revision can't be confirmed within the bound.
   */
  confirm(now: number, date?: number): MaybePromise<Revision>
  /**
   * Asks the source now, whatever is known.
   * @returns The revision that is used from then on, or a later one.
   * @throws what the source threw.
   */
  renew(now: number): MaybePromise<Revision>
  /** Uses nothing any more that was asked for before. */
  forget(now: number): void
  /** Since when and until when it goes on without a source that did not answer when it was asked last. */
  outage(now: number): Outage | undefined
}

/** A time in which what is known is used although nobody confirms it. */
export interface Outage {
  /** When the source confirmed last. */
  readonly since: number
  /** From when on nothing is used any more. */
  readonly until: number
}

/** What the service tells about how old the facts are that it uses. */
export interface Staleness extends Required<FreshnessBounds> {
  /** The outage that it goes on in, if there is one: in milliseconds since the epoch. */
  outage(): Outage | undefined
}

/** How old what is known may be. */
export interface FreshnessBounds {
  /** Milliseconds, 0–10,000; 0 asks for every request. */
  readonly maxStalenessMs: number
  /** Milliseconds beyond that for which it is used while the source does not answer (RFC 5861 §4). Default 0: none. */
  readonly staleIfErrorMs?: number
}

/** Who is told what becomes of the source. */
export interface FreshnessWatch {
  /** The revision turned out to be another than the one before. */
  changed?(): void
  /** The source did not answer, for the first time since it did. */
  silent?(error: unknown): void
  /** The source answers again. */
  answering?(): void
}

/** A source that does not answer, while nobody waits for it, is asked again after this many milliseconds. */
const retryAfterMs = 1_000

/** When something was, on the clock of `now` and on the calendar: while a machine sleeps, only the latter goes on. */
interface Instant {
  readonly at: number
  readonly date: number
}

const never: Instant = { at: -Infinity, date: -Infinity }

/**
 * From half the bound on, a request that comes asks the source again; it waits for the answer only when the
 * bound has passed. A confirmation counts from the moment it was asked for.
 *
 * @param source Reads the revision.
 * @param today Milliseconds on the calendar, which may be set: forward, it has the source asked once too often.
 */
export function createFreshness(
  source: () => MaybePromise<Revision>,
  { maxStalenessMs, staleIfErrorMs = 0 }: FreshnessBounds,
  watch: FreshnessWatch = {},
  today: () => number = Date.now,
): Freshness {
  let current: Revision | undefined
  let confirmed = never
  let pending: Promise<Revision> | undefined
  let askedLast = never
  let isSilent = false

  function age(instant: Instant, now: number, date: number = today()): number {
    return Math.max(now - instant.at, date - instant.date)
  }

  function settle(revision: Revision, asked: Instant): Revision {
    if (current === undefined || current.facts !== revision.facts || current.content !== revision.content) {
      if (asked.at >= confirmed.at) {
        current = revision
        watch.changed?.()
      }
    }
    if (asked.at > confirmed.at) {
      confirmed = asked
      if (isSilent) watch.answering?.()
      isSilent = false
    }
    return current ?? revision
  }

  function fail(error: unknown, asked: Instant): never {
    if (asked.at >= confirmed.at) {
      if (!isSilent) watch.silent?.(error)
      isSilent = true
    }
    throw error
  }

  function ask(now: number): MaybePromise<Revision> {
    let answer: MaybePromise<Revision>
    const instant = askedLast = { at: now, date: today() }
    try {
      answer = source()
    } catch (error) {
      return fail(error, instant)
    }
    if (!(answer instanceof Promise)) return settle(answer, instant)
    const asked: Promise<Revision> = answer
      .then((revision) => settle(revision, instant), (error: unknown) => fail(error, instant))
      .finally(() => {
        if (pending === asked) pending = undefined
      })
    pending = asked
    return asked
  }

  /** Asks while others are answered from what is known. */
  function askBehind(now: number): void {
    try {
      const asked = ask(now)
      if (asked instanceof Promise) asked.catch(() => undefined)
    } catch {
      // What is known may still be used, and the next request asks again.
    }
  }

  function outage(now: number): Outage | undefined {
    if (staleIfErrorMs === 0 || !isSilent) return undefined
    const leaseMs = maxStalenessMs + staleIfErrorMs
    return age(confirmed, now) < leaseMs ? { since: confirmed.at, until: confirmed.at + leaseMs } : undefined
  }

  /** The answer, or what is known instead of a failure while that may be used. */
  function orKnown(answer: () => MaybePromise<Revision>, now: number): MaybePromise<Revision> {
    const known = (error: unknown): Revision => {
      if (current !== undefined && outage(now) !== undefined) return current
      throw error
    }
    try {
      const asked = answer()
      return asked instanceof Promise ? asked.catch(known) : asked
    } catch (error) {
      return known(error)
    }
  }

  return {
    confirm(now, date) {
      const ageMs = age(confirmed, now, date)
      if (current !== undefined && ageMs < maxStalenessMs) {
        if (ageMs >= maxStalenessMs / 2 && pending === undefined) askBehind(now)
        return current
      }
      const answer = (): MaybePromise<Revision> =>
        pending !== undefined && age(askedLast, now) < maxStalenessMs ? pending : ask(now)
      if (staleIfErrorMs === 0) return answer()
      if (current !== undefined && outage(now) !== undefined) {
        if (pending === undefined && age(askedLast, now) >= retryAfterMs) askBehind(now)
        return current
      }
      return orKnown(answer, now)
    },
    renew: ask,
    forget(now) {
      current = pending = undefined
      confirmed = { at: now, date: today() }
    },
    outage,
  }
}
