import type { MaybePromise } from '../lib/promise.ts'
import type { Banner, Industry, Plan, Profile } from '../model.ts'
import type { AuditContext } from './changes.ts'

/** Content as an operator changes it. Records are valid in themselves and refer only to what exists. */
export interface ContentAdministration {
  /**
   * Creates or replaces by slug (a banner by its partner) in one transaction that also moves `Revision.content` and
   * notes the import in the audit trail, unless nothing changes. Equal records are left as they are.
   *
   * @param records Nothing is written unless all of them arrive: what their iterator throws is thrown.
   */
  importContent<K extends ContentKind>(
    kind: K,
    records: Iterable<ContentRecords[K]> | AsyncIterable<ContentRecords[K]>,
    options: ImportOptions,
  ): MaybePromise<ImportReport>

  /**
   * All records of a kind at one moment, by slug (banners by partner). A store that is elsewhere hands them over as
   * they arrive, and may throw then.
   */
  exportContent<K extends ContentKind>(
    kind: K,
  ): MaybePromise<Iterable<ContentRecords[K]> | AsyncIterable<ContentRecords[K]>>

  /**
   * Removes by slug, all or nothing, and notes it in the audit trail.
   * @returns The slugs that kept it from being done: `missing` do not exist, `used` are referred to by
   * content that stays (an industry by its profiles or children). Nothing was removed unless both are empty.
   */
  removeContent(
    kind: ContentKind,
    slugs: readonly string[],
    context: AuditContext,
  ): MaybePromise<{ readonly missing: readonly string[]; readonly used: readonly string[] }>
}

/** How an import is to be done. */
export interface ImportOptions {
  /** The instant that becomes `updatedAt` of what was created or replaced. */
  readonly now: number
  /** Who imports, for the audit trail: 1–200 characters. */
  readonly actor: string
  /** Write nothing, report what would be. */
  readonly dryRun?: boolean
  /** Called now and then with the number of records written so far. */
  readonly progress?: (done: number) => void
}

/** What an import did or, on a dry run, would have done. */
export interface ImportReport {
  /** Records whose slug was new. */
  readonly created: number
  /** Records that took the place of another one. */
  readonly replaced: number
  /** Records that were there already, equal in all. */
  readonly unchanged: number
}

/** Content as an operator imports and exports it: everything, public or not yet. */

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

/** Whether a profile is in the public set of `partner` at `now`: published, due, and visible to that partner. */
export function isPublic(
  profile: Pick<ProfileRecord, 'publishedAt' | 'visibleTo'>,
  partner: string,
  now: number,
): boolean {
  if (profile.publishedAt === undefined || profile.publishedAt > now) return false
  return profile.visibleTo === undefined || profile.visibleTo.includes(partner)
}
