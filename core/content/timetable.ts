import { afterAll } from '../after.ts'
import { createBoundedMap } from '../cache/bounded.ts'
import type { Banner } from '../model.ts'
import type { Directory, MaybePromise, Offers } from '../ports.ts'

/** Knows when time alone changes what a partner sees. */
export interface Timetable {
  /**
   * The first instant after `now` at which a profile falls due or a banner comes into or out of its dates;
   * Infinity when none does.
   * @param content The revision of content.
   */
  nextChangeAt(partner: string, content: string, now: number): MaybePromise<number>
}

/** @param maxPartners For how many partners an instant is remembered. */
export function createTimetable(directory: Directory, offers: Offers, maxPartners = 10_000): Timetable {
  const known = createBoundedMap<{ readonly content: string; readonly at: number }>(maxPartners)
  return {
    nextChangeAt(partner, content, now) {
      const entry = known.get(partner)
      if (entry !== undefined && entry.content === content && now < entry.at) return entry.at
      return afterAll<[number | undefined, Banner | undefined], number>(
        [directory.nextProfileChangeAt(partner, now), offers.findBanner(partner)],
        ([due, banner]) => {
          const instants = [due, banner?.startsAt, banner?.endsAt]
          const at = Math.min(
            ...instants.filter((instant) => instant !== undefined && instant > now) as number[],
          )
          known.set(partner, { content, at })
          return at
        },
      )
    },
  }
}
