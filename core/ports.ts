/** What the service asks of the world, in the service's own words. A store implements all of it. */
import type { Change } from './admin/changes.ts'
import type { ContentKind, ContentRecords } from './content/records.ts'
import type { AuditEntry, AuditHead, Stamp } from './audit/entry.ts'
import type { ClockReading } from './clock.ts'
import type { Activity, ActivityQuery } from './reports/activity.ts'
import type { SummaryCounts } from './reports/summary.ts'
import type { UsageCount } from './reports/usage.ts'
import type { QuotaLedger } from './limits/ledger.ts'
import type { ReplicaRegistry } from './replicas/registry.ts'
import type { IdempotencyClaim, Signup, SignupOutcome } from './signups/signup.ts'
import type { Banner, Industry, Key, KeyFacts, Partner, Plan, Profile, ProfileCard } from './model.ts'

/**
 * A value that may have to be awaited. A source that has its answer at hand returns it as it is, and the
 * request is then answered without a turn of the event loop.
 */
export type MaybePromise<T> = T | Promise<T>

/**
 * What has been changed so far. Two revisions that are equal mean that nothing was changed in between;
 * nothing else can be read from them.
 */
export interface Revision {
  /** Changes with every administrative change: partners, modules, keys, scopes. Neither text holds a space. */
  readonly facts: string
  /** Changes with every change of content. */
  readonly content: string
}

/** Where key facts come from. */
export interface FactSource {
  /**
   * Makes sure that what is kept can be read now, and not only that nothing is known to have changed.
   * @throws when it can't.
   */
  check(): MaybePromise<void>

  /**
   * The revision at the time of the call, changes committed by other processes included.
   * @throws when the store does not answer.
   */
  revision(): MaybePromise<Revision>

  /**
   * The key with this public id and its partner, whatever their state, or `undefined`.
   * @throws when the store does not answer.
   */
  findKey(id: string): MaybePromise<KeyFacts | undefined>

  /** Notes when keys were used last, by public id. Never bumps the revision; unknown ids are passed over. */
  recordKeyUses(uses: ReadonlyMap<string, number>): MaybePromise<void>
}

/** The orders of the directory: by folded name, or newest first; by slug where those are equal. */
export type ProfileSort = 'name' | '-published_at'

/** A position between two profiles in an order of the directory: after the one that these belong to. */
export interface ProfilePosition {
  /** The folded name (see `fold`) for `name`, the instant of publication for `-published_at`. */
  readonly key: string | number
  /** The slug of the profile: tells those apart whose `key` is the same. */
  readonly slug: string
}

/** A question to the directory. The filters must all hold; empty ones hold always. */
export interface ProfileQuery {
  /** Folded words; each must start a word of the folded name, headline, description or tags. */
  readonly words: readonly string[]
  /** Alpha-2, upper case: any of these. */
  readonly countries: readonly string[]
  /** Industry slugs: any of these, children not included. */
  readonly industries: readonly string[]
  /** In which order. */
  readonly sort: ProfileSort
  /** Only what comes after this position. */
  readonly after: ProfilePosition | undefined
  /** 1 or more. */
  readonly limit: number
}

/**
 * Public profiles. Every read is for one partner, and answers only from the public set of that partner:
 * profiles published at or before `now` that are visible to every partner or shared with this one.
 * A self-hoster whose profiles live elsewhere implements this port over their own tables.
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
   * Changes whenever what this directory answers changes for another reason than time. Replies are kept as
   * long as it stays the same; a directory without it has every request asked anew.
   */
  directoryRevision?(): MaybePromise<string>
}

/** Banners and plans. */
export interface Offers {
  /** The partner's banner, in its dates or not, or `undefined`. */
  findBanner(partner: string): MaybePromise<Banner | undefined>

  /** All plans, in any order. */
  listPlans(): MaybePromise<readonly Plan[]>
}

/** Partners and keys as an operator sees and changes them. */
export interface Administration {
  /** Partners, removed ones included, by slug: at most `limit` of those after the slug `after`. */
  listPartners(after: string | undefined, limit: number): MaybePromise<readonly Partner[]>

  /** The partner with this slug, removed or not, or `undefined`. `slug` has the form of one. */
  findPartner(slug: string): MaybePromise<Partner | undefined>

  /** Keys of all partners or of one, oldest first, then by id; `after` is the last one seen. */
  listKeys(
    partner: string | undefined,
    after: Pick<Key, 'createdAt' | 'id'> | undefined,
    limit: number,
  ): MaybePromise<readonly Key[]>

  /**
   * Applies all changes or none, in order, in one transaction that also moves `Revision.facts` and notes each of them
   * in the audit trail; the removal of a partner is followed by an entry for each key that it revokes.
   *
   * @param ifFacts The revision under which the changes were decided.
   * @param stamp Who decided them, and when.
   * @returns false, with nothing applied, when the facts have been changed since.
   */
  apply(changes: readonly Change[], ifFacts: string, stamp: Stamp): MaybePromise<boolean>
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
    stamp: Stamp,
  ): MaybePromise<{ readonly missing: readonly string[]; readonly used: readonly string[] }>
}

/** Where signups are kept. */
export interface SignupStore {
  /**
   * Keeps a signup, once however often it is asked for under one idempotency key. Returns when it is durable.
   * A claim is kept only with a signup that was created, and holds until `claim.expiresAt` is `signup.createdAt` of an
   * attempt, or before it.
   *
   * @throws when the store does not answer, the partner or key does not exist, or there is a signup with this id.
   */
  createSignup(signup: Signup, claim: IdempotencyClaim | undefined): MaybePromise<SignupOutcome>

  /** Signups of all partners or of one, test ones included, newest first, then by id; `after` is the last one seen. */
  listSignups(
    partner: string | undefined,
    after: { readonly createdAt: number; readonly id: string } | undefined,
    limit: number,
  ): MaybePromise<readonly Signup[]>
}

/** What reports are made of. */
export interface Reports {
  /**
   * Adds all of the counts to what is counted already, or none. Never bumps a revision.
   *
   * @param batch Tells these counts from all others. What threw may have been done all the same when a store is
   * elsewhere: asked again for the same batch, it is done once.
   * @param keepFrom Counts of requests and signups of days before this one are removed, a few at a time.
   */
  recordUsage(counts: readonly UsageCount[], batch: string, keepFrom?: string): MaybePromise<void>

  /** Counts of a partner's live keys over days, both inclusive, `YYYY-MM-DD` in UTC. */
  summarise(partner: string, from: string, to: string): MaybePromise<SummaryCounts>

  /**
   * What happened to a partner up to `now`: its live signups, and from the audit trail what was decided about its
   * keys, scopes and modules; `key.expired` at the instant at which a key that was not revoked by then expired or
   * its overlap ended.
   */
  listActivity(partner: string, query: ActivityQuery, now: number): MaybePromise<readonly Activity[]>
}

/** The trail of everything that operators did. */
export interface AuditTrail {
  /**
   * Entries in the order of their sequence, from the one after `after` (0 for the first). Rows that somebody put there
   * past the store are among them; a number that no store counts to is infinite.
   *
   * @param partner Only entries about this partner, its modules and keys.
   */
  listAudit(after: number, limit: number, partner?: string): MaybePromise<readonly AuditEntry[]>

  /**
   * The position at which the last `count` entries begin, as `after` of `listAudit`; `-Infinity` when there are no others.
   */
  auditTail(count: number, partner?: string): MaybePromise<number>

  /** What the store noted of the last entry when it wrote it. */
  auditHead(): MaybePromise<AuditHead>

  /**
   * Names of triggers, rules and views that somebody added to the store, on whichever table: they may keep entries from
   * arriving, which no seal misses, and change what is written or read.
   */
  auditIntruders?(): MaybePromise<readonly string[]>
}

/** What was settled when the store was made. */
export interface StoreSettings {
  /** First part of every key of this store: 2–10 lower-case letters or digits, a letter first. */
  readonly keyPrefix: string
  /** 64 hexadecimal digits: authenticates paging cursors, the same in every replica. */
  readonly cursorSecret: string
}

/** Everything that the service keeps. */
export interface Store
  extends
    FactSource,
    Directory,
    Offers,
    Administration,
    ContentAdministration,
    SignupStore,
    Reports,
    AuditTrail {
  /** What was settled when it was made. */
  readonly settings: StoreSettings
  /**
   * The last reading of the store's own clock, where machines share the store. Asking for the revision renews it.
   */
  clock?(): ClockReading | undefined
  /** Where replicas that share the store are registered; a store that knows of none has no such place. */
  readonly replicas?: ReplicaRegistry
  /** Where they share quotas; without it, every process counts for itself. */
  readonly quotas?: QuotaLedger
  /** SHA-256 of the UTF-8 bytes of `text`, 64 lower-case hexadecimal digits. */
  sha256(text: string): string
  /** Gives back what the store holds. Nothing may be asked of it afterwards. */
  close(): MaybePromise<void>
}
