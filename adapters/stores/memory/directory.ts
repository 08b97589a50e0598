import { compareCodePoints, fold } from '../../../core/content/fold.ts'
import type { ProfileRecord } from '../../../core/content/records.ts'
import { isPublic } from '../../../core/content/visibility.ts'
import type { ProfileCard } from '../../../core/model.ts'
import type { Directory, ProfilePosition, ProfileQuery } from '../../../core/ports.ts'
import { matchesWords, searchText } from '../search-text.ts'
import type { Synchronous } from '../answers.ts'
import type { Kept, Shelves } from './content.ts'

/** A published profile, everything that a list needs of it made once. */
interface Listed {
  readonly record: ProfileRecord
  readonly nameKey: string
  readonly publishedAt: number
  readonly search: string
  readonly card: ProfileCard
}

/** What of the directory follows from orders. */
export interface Listings extends Synchronous<Omit<Directory, 'listIndustries' | 'directoryRevision'>> {
  /** To be called after every change of content. */
  contentChanged(): void
}

type Order = (listed: Listed, key: string | number, slug: string) => number

const byName: Order = (listed, key, slug) =>
  compareCodePoints(listed.nameKey, String(key)) || compareCodePoints(listed.record.slug, slug)

const newestFirst: Order = (listed, key, slug) =>
  Number(key) - listed.publishedAt || compareCodePoints(listed.record.slug, slug)

/**
 * The directory over the shelves of a memory store. Each order of all published profiles is sorted once after a
 * change of content; a page is a walk from a binary search, so a filter that few profiles pass costs a look at all.
 */
export function createDirectory(shelves: Shelves): Listings {
  let orders: Readonly<Record<ProfileQuery['sort'], readonly Listed[]>> | undefined

  function sorted(sort: ProfileQuery['sort']): readonly Listed[] {
    if (orders === undefined) {
      const listed = [...shelves.profiles.values()].flatMap((kept) => list(shelves, kept))
      orders = {
        name: listed.toSorted((a, b) => byName(a, b.nameKey, b.record.slug)),
        '-published_at': listed.toSorted((a, b) => newestFirst(a, b.publishedAt, b.record.slug)),
      }
    }
    return orders[sort]
  }

  return {
    contentChanged() {
      orders = undefined
    },

    listProfiles(partner, query, now) {
      const { words, countries, industries, limit } = query
      const all = sorted(query.sort)
      const page: ProfileCard[] = []
      const start = query.after === undefined ? 0 : startAfter(all, query.sort, query.after)
      for (let index = start; index < all.length && page.length < limit; index++) {
        const { record, search, card } = all[index]!
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
      const kept = shelves.profiles.get(slug)
      if (kept === undefined || !isPublic(kept.record, partner, now)) return undefined
      const { visibleTo: _, ...shown } = kept.record
      return { ...shown, ...cardOf(shelves, kept, kept.record.publishedAt!) }
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
      const dues = sorted('-published_at')
      let next: number | undefined
      for (const { record, publishedAt } of dues) {
        if (publishedAt <= now) break
        if (isPublic(record, partner, publishedAt)) next = publishedAt
      }
      return next
    },
  }
}

function list(shelves: Shelves, kept: Kept<ProfileRecord>): Listed[] {
  const { record } = kept
  if (record.publishedAt === undefined) return []
  return [{
    record,
    nameKey: fold(record.name),
    publishedAt: record.publishedAt,
    search: searchText(record),
    card: cardOf(shelves, kept, record.publishedAt),
  }]
}

function cardOf(
  shelves: Shelves,
  { record, updatedAt }: Kept<ProfileRecord>,
  publishedAt: number,
): ProfileCard {
  const { slug, name, headline, country, logoUrl } = record
  const industry = { slug: record.industry, name: shelves.industries.get(record.industry)!.record.name }
  return { slug, name, headline, country, industry, logoUrl, publishedAt, updatedAt }
}

/** The index of the first profile after a position; the position's own profile need not exist any more. */
function startAfter(all: readonly Listed[], sort: ProfileQuery['sort'], after: ProfilePosition): number {
  const order = sort === 'name' ? byName : newestFirst
  let low = 0
  let high = all.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (order(all[middle]!, after.key, after.slug) <= 0) low = middle + 1
    else high = middle
  }
  return low
}
