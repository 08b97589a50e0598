/** Content as an operator imports and exports it: everything, public or not yet. */
import type { Banner, Industry, Plan, Profile } from '../model.ts'

/** A profile with what decides who sees it. */
export interface ProfileRecord extends Omit<Profile, 'industry' | 'publishedAt' | 'updatedAt'> {
  /** Slug of an industry that exists. */
  readonly industry: string
  /** `undefined`: a draft, public to nobody. In the future: public once due. */
  readonly publishedAt: number | undefined
  /** `undefined`: every partner. A list: only those; an empty one: nobody. */
  readonly visibleTo: readonly string[] | undefined
}

/** A banner without the instant that the store keeps for it. */
export type BannerRecord = Omit<Banner, 'updatedAt'>

/** The record of each kind of content. */
export interface ContentRecords {
  /** What the directory shows, and to whom. */
  profiles: ProfileRecord
  /** What profiles belong to. */
  industries: Industry
  /** What a pricing table shows. */
  plans: Plan
  /** What one partner shows for a time. */
  banners: BannerRecord
}

/** The kinds of content. A banner is addressed by its partner's slug, the others by their own. */
export const CONTENT_KINDS = ['profiles', 'banners', 'industries', 'plans'] as const

/** A kind of content. */
export type ContentKind = (typeof CONTENT_KINDS)[number]
