import type { Synchronous } from '../../../core/lib/promise.ts'
import { compareCodePoints, fold } from '../../../core/lib/text.ts'
import type { ProfileCard } from '../../../core/model.ts'
import {
  type ContentKind,
  type ContentRecords,
  type ImportOptions,
  type ImportReport,
  isPublic,
  type ProfileRecord,
} from '../../../core/ports/content.ts'
import type { Directory, ProfilePosition, ProfileQuery } from '../../../core/ports/directory.ts'
import { type AuditRecord, createImportLog } from '../audit-log.ts'
import { matchesWords, searchText } from '../content-text.ts'
import type { StoredRow } from '../row-format.ts'
import { CONTENT_TABLES } from '../tables.ts'

/** A published profile, everything that a list needs of it made once. */
interface ListedProfile {
  readonly record: ProfileRecord
  readonly nameKey: string
  readonly publishedAt: number
  readonly search: string
  readonly card: ProfileCard
}

/** What of the directory follows from orders. */
export interface DirectoryIndex extends Synchronous<Omit<Directory, 'listIndustries' | 'directoryRevision'>> {
  /** To be called after every change of content. */
  invalidate(): void
}

type ComparePosition = (listed: ListedProfile, key: string | number, slug: string) => number

const byName: ComparePosition = (listed, key, slug) =>
  compareCodePoints(listed.nameKey, String(key)) || compareCodePoints(listed.record.slug, slug)

const newestFirst: ComparePosition = (listed, key, slug) =>
  Number(key) - listed.publishedAt || compareCodePoints(listed.record.slug, slug)

/**
 * The directory over the shelves of a memory store. Each order of all published profiles is sorted once after a
 * change of content; a page is a walk from a binary search, so a filter that few profiles pass costs a look at all.
 */
export function createDirectory(tables: ContentTables): DirectoryIndex {
  let orders: Readonly<Record<ProfileQuery['sort'], readonly ListedProfile[]>> | undefined

  function sorted(sort: ProfileQuery['sort']): readonly ListedProfile[] {
    if (orders === undefined) {
      const listed = [...tables.profiles.values()].flatMap((kept) => toListed(tables, kept))
      orders = {
        name: listed.toSorted((a, b) => byName(a, b.nameKey, b.record.slug)),
        '-published_at': listed.toSorted((a, b) => newestFirst(a, b.publishedAt, b.record.slug)),
      }
    }
    return orders[sort]
  }

  return {
    invalidate() {
      orders = undefined
    },

    listProfiles(partner, query, now) {
      const { words, countries, industries, limit } = query
      const ordered = sorted(query.sort)
      const page: ProfileCard[] = []
      const start = query.after === undefined ? 0 : startAfter(ordered, query.sort, query.after)
      for (let index = start; index < ordered.length && page.length < limit; index++) {
        const { record, search, card } = ordered[index]!
        if (
          isPublic(record, partner, now) &&
          (countries.length === 0 || countries.includes(record.country)) &&
          (industries.length === 0 || industries.includes(record.industry)) &&
          matchesWords(search, words)
        ) page.push(card)
      }
      return page
    },

    findProfile(partner, slug, now) {
      const stored = tables.profiles.get(slug)
      if (stored === undefined || !isPublic(stored.record, partner, now)) return undefined
      const { visibleTo: _, ...visible } = stored.record
      return { ...visible, ...toCard(tables, stored, stored.record.publishedAt!) }
    },

    countProfiles(partner, by, now) {
      const counts = new Map<string, number>()
      for (const { record } of sorted('name')) {
        if (isPublic(record, partner, now)) counts.set(record[by], (counts.get(record[by]) ?? 0) + 1)
      }
      return counts
    },

    nextProfileChangeAt(partner, now) {
      // Newest first, so what is not due yet stands in front and the last of it is the first to fall due.
      const byPublication = sorted('-published_at')
      let next: number | undefined
      for (const { record, publishedAt } of byPublication) {
        if (publishedAt <= now) break
        if (isPublic(record, partner, publishedAt)) next = publishedAt
      }
      return next
    },
  }
}

function toListed(tables: ContentTables, stored: StoredRecord<ProfileRecord>): ListedProfile[] {
  const { record } = stored
  if (record.publishedAt === undefined) return []
  return [{
    record,
    nameKey: fold(record.name),
    publishedAt: record.publishedAt,
    search: searchText(record),
    card: toCard(tables, stored, record.publishedAt),
  }]
}

function toCard(
  tables: ContentTables,
  { record, updatedAt }: StoredRecord<ProfileRecord>,
  publishedAt: number,
): ProfileCard {
  const { slug, name, headline, country, logoUrl } = record
  const industry = { slug: record.industry, name: tables.industries.get(record.industry)!.record.name }
  return { slug, name, headline, country, industry, logoUrl, publishedAt, updatedAt }
}

/** The index of the first profile after a position; the position's own profile need not exist any more. */
function startAfter(
  ordered: readonly ListedProfile[],
  sort: ProfileQuery['sort'],
  after: ProfilePosition,
): number {
  const order = sort === 'name' ? byName : newestFirst
  let low = 0
  let high = ordered.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (order(ordered[middle]!, after.key, after.slug) <= 0) low = middle + 1
    else high = middle
  }
  return low
}

/** A record and its row: equal records have equal rows. */
export interface StoredRecord<R> {
  readonly record: R
  readonly row: StoredRow
  /** The instant of the import that created or last replaced the record. */
  readonly updatedAt: number
}

/** The content of a memory store, by kind and slug. */
export type ContentTables = { readonly [K in ContentKind]: Map<string, StoredRecord<ContentRecords[K]>> }

export function createContentTables(): ContentTables {
  return { profiles: new Map(), industries: new Map(), plans: new Map(), banners: new Map() }
}

/**
 * Creates or replaces records. Nothing is written before every record has been read.
 *
 * @returns The report, and the audit record unless nothing was changed.
 */
export function importRecords<K extends ContentKind>(
  tables: ContentTables,
  kind: K,
  records: readonly ContentRecords[K][],
  { now, dryRun, progress }: ImportOptions,
): { report: ImportReport; auditRecords: readonly AuditRecord[] } {
  const { values, read } = CONTENT_TABLES[kind]
  const table = tables[kind]
  const written = new Map<string, StoredRecord<ContentRecords[K]>>()
  const importLog = createImportLog(kind, progress)
  for (const record of records) {
    const row = values(record)
    const slug = String(row[0])
    if (!importLog.add(row, (written.get(slug) ?? table.get(slug))?.row)) continue
    // Read back from the row: the caller may change its record later.
    written.set(slug, { record: read(row), row, updatedAt: now })
  }
  if (dryRun) return { report: importLog.report, auditRecords: [] }
  for (const [slug, stored] of written) table.set(slug, stored)
  return { report: importLog.report, auditRecords: importLog.auditRecords() }
}

/** What keeps the records from being removed; see `ContentAdministration.removeContent`. */
export function removalObstacles(
  tables: ContentTables,
  kind: ContentKind,
  slugs: ReadonlySet<string>,
): { missing: string[]; used: string[] } {
  const inUse = new Set<string>()
  if (kind === 'industries') {
    for (const { record } of tables.profiles.values()) inUse.add(record.industry)
    for (const { record } of tables.industries.values()) {
      if (record.parentSlug !== undefined && !slugs.has(record.slug)) inUse.add(record.parentSlug)
    }
  }
  return {
    missing: [...slugs].filter((slug) => !tables[kind].has(slug)),
    used: [...slugs].filter((slug) => inUse.has(slug)),
  }
}
