import { compareCodePoints, fold, foldWords } from '../lib/text.ts'
import type { Profile, ProfileCard } from '../model.ts'
import type { ProfilePosition, ProfileQuery, ProfileSort } from '../ports/directory.ts'

export function positionOf({ name, publishedAt, slug }: ProfileCard, sort: ProfileSort): ProfilePosition {
  return { key: sort === 'name' ? fold(name) : publishedAt, slug }
}

function comparePositions(a: ProfilePosition, b: ProfilePosition): number {
  const byKey = typeof a.key === 'number' ? Number(b.key) - a.key : compareCodePoints(a.key, String(b.key))
  return byKey || compareCodePoints(a.slug, b.slug)
}

/**
 * Profiles in memory that every partner sees, in both orders of the directory. A page is found by binary search and
 * read from there: a filter that few profiles pass reads them all.
 */
export function createProfileIndex(profiles: readonly Profile[]) {
  const searchable = profiles.map((profile) => ({ profile, search: searchText(profile) }))
  const sorted = (sort: ProfileSort) =>
    searchable.map((item) => ({ ...item, position: positionOf(item.profile, sort) }))
      .sort((a, b) => comparePositions(a.position, b.position))
  const orders = { name: sorted('name'), '-published_at': sorted('-published_at') }

  return {
    listProfiles(_partner: string, query: ProfileQuery, now: number): ProfileCard[] {
      const { words, countries, industries, sort, after, limit } = query
      const order = orders[sort]
      const page: ProfileCard[] = []
      const start = after === undefined
        ? 0
        : indexAfter(order, ({ position }) => comparePositions(position, after) <= 0)
      for (let index = start; index < order.length && page.length < limit; index++) {
        const { profile, search } = order[index]!
        if (
          profile.publishedAt <= now &&
          (countries.length === 0 || countries.includes(profile.country)) &&
          (industries.length === 0 || industries.includes(profile.industry.slug)) &&
          matchesWords(search, words)
        ) page.push(profile)
      }
      return page
    },

    countProfiles(_partner: string, by: 'country' | 'industry', now: number): Map<string, number> {
      const counts = new Map<string, number>()
      for (const { publishedAt, country, industry } of profiles) {
        if (publishedAt > now) continue
        const group = by === 'country' ? country : industry.slug
        counts.set(group, (counts.get(group) ?? 0) + 1)
      }
      return counts
    },

    nextProfileChangeAt(_partner: string, now: number): number | undefined {
      // Newest first: the last of the profiles that are not due yet is the next to be due.
      let next: number | undefined
      for (const { profile: { publishedAt } } of orders['-published_at']) {
        if (publishedAt <= now) break
        next = publishedAt
      }
      return next
    },
  }
}

type SearchedProfile = Pick<Profile, 'name' | 'headline' | 'description' | 'tags'>

/** The words of a profile that a search finds it by: folded, each once. */
export function searchWords(profile: SearchedProfile): Iterable<string> {
  const text = [profile.name, profile.headline, profile.description ?? '', ...profile.tags].join(' ')
  return new Set(foldWords(text))
}

/** The words with a space before each: `' uni'` matches the start of a word. */
export function searchText(profile: SearchedProfile): string {
  return Array.from(searchWords(profile), (word) => ` ${word}`).join('')
}

/** Whether each of the folded `words` starts a word of a search text. */
export function matchesWords(text: string, words: readonly string[]): boolean {
  return words.every((word) => text.includes(` ${word}`))
}

/** The index of the first item for which `isBefore` is false; it is true for all items before that one. */
function indexAfter<T>(items: readonly T[], isBefore: (item: T) => boolean): number {
  let low = 0
  for (let high = items.length; low < high;) {
    const middle = (low + high) >>> 1
    if (isBefore(items[middle]!)) low = middle + 1
    else high = middle
  }
  return low
}
