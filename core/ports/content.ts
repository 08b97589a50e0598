import type { MaybePromise } from '../lib/promise.ts'
import type { Banner, Industry, Plan, Profile } from '../model.ts'
import type { AuditContext } from './changes.ts'

/** Administration of content. Records are valid and refer only to existing records. */
export interface ContentAdministration {
  /**
   * Creates or replaces by slug (a banner by its partner) in one transaction that also moves `Revision.content` and
   * adds an audit entry, unless nothing changes. Equal records are left alone.
   *
   * @param records When the iterator throws, nothing is written and its error is thrown.
   */
  importContent<K extends ContentKind>(
    kind: K,
    records: Iterable<ContentRecords[K]> | AsyncIterable<ContentRecords[K]>,
    options: ImportOptions,
  ): MaybePromise<ImportReport>

  /**
   * All records of a kind from one snapshot, by slug (banners by partner). A remote store streams them and may
   * throw during the iteration.
   */
  exportContent<K extends ContentKind>(
    kind: K,
  ): MaybePromise<Iterable<ContentRecords[K]> | AsyncIterable<ContentRecords[K]>>

  /**
   * Removes by slug, all or nothing, and adds an audit entry.
   * @returns The slugs that prevented it: `missing` do not exist, `used` are referred to by other content (an
   * industry by profiles or children). Nothing was removed unless both are empty, nor in a dry run.
   */
  removeContent(
    kind: ContentKind,
    slugs: readonly string[],
    context: AuditContext,
    dryRun?: boolean,
  ): MaybePromise<{ readonly missing: readonly string[]; readonly used: readonly string[] }>
}

/** Options of an import. */
export interface ImportOptions {
  /** The `updatedAt` of created and replaced records. */
  readonly now: number
  /** Who imports, for the audit log: 1–200 characters. */
  readonly actor: string
  /** Whether to report what an import would do, without doing it. */
  readonly dryRun?: boolean
  /** Called repeatedly with the number of records written so far. */
  readonly progress?: (done: number) => void
}

/** The result of an import or a dry run. */
export interface ImportReport {
  /** Records with a new slug. */
  readonly created: number
  /** Records that replaced another one. */
  readonly replaced: number
  /** Records that were equal to the stored ones. */
  readonly unchanged: number
}

/** A profile as imported and exported, published or not. */
export interface ProfileRecord extends Omit<Profile, 'industry' | 'publishedAt' | 'updatedAt'> {
  /** Slug of an industry that exists. */
  readonly industry: string
  /** `undefined` for a draft. An instant in the future: not public until then. */
  readonly publishedAt: number | undefined
  /** The partners that see it; `undefined` for every partner, empty for none. */
  readonly visibleTo: readonly string[] | undefined
}

/** A banner as imported and exported. */
export type BannerRecord = Omit<Banner, 'updatedAt'>

/** The record of each kind of content. */
export interface ContentRecords {
  /** A profile, by slug. */
  profiles: ProfileRecord
  /** An industry, by slug. */
  industries: Industry
  /** A plan, by slug. */
  plans: Plan
  /** A banner, by partner. */
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
