import { compareCodePoints, fold } from '../../../core/lib/text.ts'
import type { ProfileCard } from '../../../core/model.ts'
import { isPublic, type ProfileRecord } from '../../../core/ports/content.ts'
import type { Catalog, Directory, ProfilePosition, ProfileSort } from '../../../core/ports/directory.ts'
import type { Draft } from '../content-import.ts'
import { matchesWords, searchText } from '../content-text.ts'
import type { Content } from './content.ts'
import { indexAfter } from './ordered-index.ts'

/** A published profile, with everything that a list needs of it. */
interface ListedProfile {
  readonly record: ProfileRecord
  readonly nameKey: string
  readonly search: string
  readonly card: ProfileCard
}

/** Compares a profile with a position in each order. */
const compareByOrder: Readonly<
  Record<ProfileSort, (listed: ListedProfile, position: ProfilePosition) => number>
> = {
  name: ({ nameKey, card }, { key, slug }) =>
    compareCodePoints(nameKey, String(key)) || compareCodePoints(card.slug, slug),
  '-published_at': ({ card }, { key, slug }) =>
    Number(key) - card.publishedAt || compareCodePoints(card.slug, slug),
}

function positionOf(
  { nameKey, card: { publishedAt, slug } }: ListedProfile,
  sort: ProfileSort,
): ProfilePosition {
  return { key: sort === 'name' ? nameKey : publishedAt, slug }
}

/**
 * The directory over the content of a memory store. Each order of all published profiles is sorted once after a change
 * of content. A page is found by binary search and read from there: a filter that few profiles pass reads them all.
 */
export function createDirectory(content: Content) {
  const orders = new Map<ProfileSort, readonly ListedProfile[]>()

  function sorted(sort: ProfileSort): readonly ListedProfile[] {
    let order = orders.get(sort)
    if (order === undefined) {
      const compare = compareByOrder[sort]
      order = [...content.profiles.values()].flatMap((stored) => toListed(content, stored))
        .sort((a, b) => compare(a, positionOf(b, sort)))
      orders.set(sort, order)
    }
    return order
  }

  const directory = {
    listProfiles(partner, { words, countries, industries, sort, after, limit }, now) {
      const order = sorted(sort)
      const page: ProfileCard[] = []
      const start = after === undefined
        ? 0
        : indexAfter(order, (listed) => compareByOrder[sort](listed, after) <= 0)
      for (let index = start; index < order.length && page.length < limit; index++) {
        const { record, search, card } = order[index]!
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
      const stored = content.profiles.get(slug)
      if (stored === undefined || !isPublic(stored.record, partner, now)) return undefined
      const { visibleTo: _, ...visible } = stored.record
      return { ...visible, ...toCard(content, stored, stored.record.publishedAt!) }
    },

    countProfiles(partner, by, now) {
      const counts = new Map<string, number>()
      for (const { record } of sorted('name')) {
        if (isPublic(record, partner, now)) counts.set(record[by], (counts.get(record[by]) ?? 0) + 1)
      }
      return counts
    },

    nextProfileChangeAt(partner, now) {
      // Newest first: the last of the profiles that are not due yet is the next to be due.
      let next: number | undefined
      for (const { record, card: { publishedAt } } of sorted('-published_at')) {
        if (publishedAt <= now) break
        if (isPublic(record, partner, publishedAt)) next = publishedAt
      }
      return next
    },

    listIndustries: () => Array.from(content.industries.values(), ({ record }) => record),

    findBanner(partner) {
      const stored = content.banners.get(partner)
      return stored && { ...stored.record, updatedAt: stored.updatedAt }
    },

    listPlans: () => Array.from(content.plans.values(), ({ record }) => record),
  } satisfies Directory & Catalog

  /** To be called after every change of content. */
  return { directory, invalidate: () => orders.clear() }
}

function toListed(content: Content, stored: Draft<ProfileRecord>): ListedProfile[] {
  const { record } = stored
  if (record.publishedAt === undefined) return []
  const card = toCard(content, stored, record.publishedAt)
  return [{ record, nameKey: fold(record.name), search: searchText(record), card }]
}

function toCard(
  { industries }: Content,
  { record, updatedAt }: Draft<ProfileRecord>,
  publishedAt: number,
): ProfileCard {
  const { slug, name, headline, country, logoUrl } = record
  const industry = { slug: record.industry, name: industries.get(record.industry)!.record.name }
  return { slug, name, headline, country, industry, logoUrl, publishedAt, updatedAt }
}
