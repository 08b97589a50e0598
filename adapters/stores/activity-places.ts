/** Where pages of activity begin, in terms of the rows that they are made from. */
import { type Dated, EXPIRY_PREFIX, SIGNUP_PREFIX } from './newest.ts'

/** A place in an order of newest first: minus an instant, and an id. Rows after it are greater. */
export type Place = readonly [recency: number, id: string]

/** What a page is made from, after a row of activity. */
export interface ActivityPlaces {
  /** In the audit trail. */
  readonly entries: Place
  /** Among signups. */
  readonly signups: Place
  /** Among keys, by the end of their time. */
  readonly expiries: Place
}

/** Before everything. */
export const START: Place = [-Number.MAX_SAFE_INTEGER, '']

/** After every id. */
const lastId = '\u{10ffff}'

/**
 * @param after The last row of the page before.
 * @param now No page has what is later than this.
 */
export function placesAfter(after: Dated | undefined, now: number): ActivityPlaces {
  // Ids are not empty, so that what happened at `now` is after this place.
  const start = after === undefined || after.at > now ? { at: now, id: '' } : after
  return {
    entries: [-start.at, start.id],
    signups: placeAmong(SIGNUP_PREFIX, start, 'sgn_'),
    expiries: placeAmong(EXPIRY_PREFIX, start, ''),
  }
}

/**
 * The place of a row among rows whose ids are `prefix` and something, in terms of what they are made from: `stored` and
 * the same something.
 */
function placeAmong(prefix: string, { at, id }: Dated, stored: string): Place {
  if (id.startsWith(prefix)) return [-at, stored + id.slice(prefix.length)]
  return [-at, id < prefix ? '' : lastId]
}
