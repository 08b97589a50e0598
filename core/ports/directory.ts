import type { MaybePromise } from '../lib/promise.ts'
import type { Banner, Industry, Plan, Profile, ProfileCard } from '../model.ts'

/** Banners and plans. */
export interface Catalog {
  /** The partner's banner, whatever its dates, or `undefined`. */
  findBanner(partner: string): MaybePromise<Banner | undefined>

  /** All plans, in any order. */
  listPlans(): MaybePromise<readonly Plan[]>
}

/**
 * Public profiles. Every read is for one partner and returns only profiles in its public set: published at or before
 * `now`, and visible to every partner or to this one. Self-hosters with their own profiles implement this port.
 *
 * If a method fails, the response is 503 `store_unavailable`; 503 `overloaded` if the error has
 * the `code` `overloaded`.
 */
export interface Directory {
  /** The profiles that match, in order, at most `query.limit`. Names are compared by code points. */
  listProfiles(partner: string, query: ProfileQuery, now: number): MaybePromise<readonly ProfileCard[]>

  /** The profile, or `undefined` when it is not in the partner's public set. `slug` may be any text. */
  findProfile(partner: string, slug: string, now: number): MaybePromise<Profile | undefined>

  /** How many profiles of the public set each country or industry has; those with none may be left out. */
  countProfiles(
    partner: string,
    by: 'country' | 'industry',
    now: number,
  ): MaybePromise<ReadonlyMap<string, number>>

  /** All industries, in any order. */
  listIndustries(): MaybePromise<readonly Industry[]>

  /**
   * The first instant after `now` at which time alone changes the public set (a profile falls due),
   * or `undefined` when only a change of content can.
   */
  nextProfileChangeAt(partner: string, now: number): MaybePromise<number | undefined>

  /**
   * Changes whenever the results of this directory change for another reason than time. Responses are cached while
   * it stays the same; without it, and while it fails, none are cached.
   */
  directoryRevision?(): MaybePromise<string>
}

/** A query. All filters apply; an empty one matches everything. */
export interface ProfileQuery {
  /** Folded words; each must start a word of the folded name, headline, description or tags. */
  readonly words: readonly string[]
  /** Alpha-2, upper case: any of these. */
  readonly countries: readonly string[]
  /** Industry slugs: any of these, children not included. */
  readonly industries: readonly string[]
  /** The order of the profiles. */
  readonly sort: ProfileSort
  /** The position after which profiles are listed; `undefined` for the first page. */
  readonly after: ProfilePosition | undefined
  /** The most profiles, 1 or more. */
  readonly limit: number
}

/** The position of a profile in an order of the directory. */
export interface ProfilePosition {
  /** The folded name (see `fold`) for `name`, the instant of publication for `-published_at`. */
  readonly key: string | number
  /** The slug of the profile, which orders profiles with the same `key`. */
  readonly slug: string
}

/** The orders of the directory: by folded name, or newest first; by slug where those are equal. */
export type ProfileSort = 'name' | '-published_at'
