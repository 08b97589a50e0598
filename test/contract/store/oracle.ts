/** The directory as the ports define it, said a second time in the plainest way. */
import { fold, foldWords } from '../../../core/lib/text.ts'
import type { ProfileCard } from '../../../core/model.ts'
import type { ProfileRecord } from '../../../core/ports/content.ts'
import type { ProfilePosition, ProfileQuery } from '../../../core/ports/directory.ts'
import type { Store } from '../../../core/ports/store.ts'

/** Slugs of all that matches, in order, whatever position and limit the query has. */
export function expectedSlugs(
  records: readonly ProfileRecord[],
  partner: string,
  query: ProfileQuery,
  now: number,
): string[] {
  return publicSet(records, partner, now)
    .filter(({ country }) => query.countries.length === 0 || query.countries.includes(country))
    .filter(({ industry }) => query.industries.length === 0 || query.industries.includes(industry))
    .filter((record) =>
      query.words.every((word) => wordsOf(record).some((candidate) => candidate.startsWith(word)))
    )
    .sort((a, b) => {
      const newest = b.publishedAt! - a.publishedAt!
      return (query.sort === 'name' ? byCodePoints(fold(a.name), fold(b.name)) : newest) ||
        byCodePoints(a.slug, b.slug)
    })
    .map(({ slug }) => slug)
}

const foldedWords = new WeakMap<ProfileRecord, readonly string[]>()

function wordsOf(record: ProfileRecord): readonly string[] {
  const { name, headline, description = '', tags } = record
  const words = foldedWords.get(record) ?? [name, headline, description, ...tags].flatMap(foldWords)
  foldedWords.set(record, words)
  return words
}

/** What one partner sees. */
export function publicSet(records: readonly ProfileRecord[], partner: string, now: number): ProfileRecord[] {
  return records.filter(({ publishedAt, visibleTo }) =>
    publishedAt !== undefined && publishedAt <= now && (visibleTo?.includes(partner) ?? true)
  )
}

/** All cards, read a page of `query.limit` at a time. A page that is too long, or never the last, throws. */
export async function readAll(
  store: Store,
  partner: string,
  query: ProfileQuery,
  now: number,
): Promise<ProfileCard[]> {
  const all: ProfileCard[] = []
  for (let after = query.after, pages = 0;; pages++) {
    const page = await store.listProfiles(partner, { ...query, after }, now)
    if (page.length > query.limit) throw new Error(`a page of ${page.length} for a limit of ${query.limit}`)
    if (pages > 10_000) throw new Error('paging never ends')
    all.push(...page)
    if (page.length < query.limit) return all
    after = positionOf(page.at(-1)!, query.sort)
  }
}

export function positionOf(card: ProfileCard, sort: ProfileQuery['sort']): ProfilePosition {
  return { key: sort === 'name' ? fold(card.name) : card.publishedAt, slug: card.slug }
}

function byCodePoints(a: string, b: string): number {
  const [left, right] = [Array.from(a), Array.from(b)]
  for (let index = 0; index < Math.min(left.length, right.length); index++) {
    const difference = left[index]!.codePointAt(0)! - right[index]!.codePointAt(0)!
    if (difference !== 0) return difference
  }
  return left.length - right.length
}
