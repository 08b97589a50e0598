/** A naive implementation of the directory, to compare stores with. */
import { fold, foldWords } from '../../../core/lib/text.ts'
import type { ProfileCard } from '../../../core/model.ts'
import type { ProfileRecord } from '../../../core/ports/content.ts'
import type { ProfilePosition, ProfileQuery } from '../../../core/ports/directory.ts'
import type { Store } from '../../../core/ports/store.ts'

/** The slugs of all matches in order. Ignores the position and limit of the query. */
export function expectedSlugs(
  records: readonly ProfileRecord[],
  partner: string,
  query: ProfileQuery,
  now: number,
): string[] {
  return publicSet(records, partner, now)
    .filter(({ country }) => query.countries.length === 0 || query.countries.includes(country))
    .filter(({ industry }) => query.industries.length === 0 || query.industries.includes(industry))
    .filter((record) => {
      const { words } = foldedText(record)
      return query.words.every((word) => words.some((candidate) => candidate.startsWith(word)))
    })
    .sort((a, b) => {
      const byKey = query.sort === 'name'
        ? compareNumbers(foldedText(a).name, foldedText(b).name)
        : b.publishedAt! - a.publishedAt!
      return byKey || compareNumbers(codePoints(a.slug), codePoints(b.slug))
    })
    .map(({ slug }) => slug)
}

/** The profiles visible to one partner. */
export function publicSet(records: readonly ProfileRecord[], partner: string, now: number): ProfileRecord[] {
  return records.filter(({ publishedAt, visibleTo }) =>
    publishedAt !== undefined && publishedAt <= now && (visibleTo?.includes(partner) ?? true)
  )
}

/** Reads all cards in pages of `query.limit`. @throws when a page is too long or paging never ends. */
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

interface FoldedText {
  readonly name: readonly number[]
  readonly words: readonly string[]
}

/** Cached, because many queries read the same records. */
const foldedTexts = new WeakMap<ProfileRecord, FoldedText>()

function foldedText(record: ProfileRecord): FoldedText {
  let text = foldedTexts.get(record)
  if (text === undefined) {
    const { name, headline, description = '', tags } = record
    text = { name: codePoints(fold(name)), words: [name, headline, description, ...tags].flatMap(foldWords) }
    foldedTexts.set(record, text)
  }
  return text
}

function codePoints(text: string): number[] {
  return Array.from(text, (character) => character.codePointAt(0)!)
}

function compareNumbers(a: readonly number[], b: readonly number[]): number {
  const differing = a.findIndex((number, index) => number !== b[index])
  if (differing === -1) return a.length - b.length
  return differing < b.length ? a[differing]! - b[differing]! : 1
}
