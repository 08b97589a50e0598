import { matchesWords } from '../search-text.ts'
import type { Database } from './database.ts'
import { audiencesOf, ORDERS, type PageReader, type Place, type Range } from './pages.ts'

/** The first places of a range whose profiles match all `words`. */
export type SearchReader = (range: Range, words: readonly string[], limit: number) => Place[]

/** Matches that are cheaper to sort than a walk along the order is. */
const few = 5000

/** Places that are looked at before the full-text index is asked. */
const firstWalk = 256

/** Places that are held at a time when nothing but a long walk is left. */
const longestStep = 8192

/**
 * Searches in the order that is asked for. A common word soon fills a page on a walk along the order; the full-text
 * index finds a rare one, whose matches are then sorted. To sort those of a common word took 43 ms a page at a
 * million profiles, and to walk after a rare one would take a second. Both ways answer the same.
 */
export function createSearchReader(database: Database, readPage: PageReader): SearchReader {
  const texts = database.statement<[search: string]>(`
    SELECT p.search FROM json_each(?1) place CROSS JOIN profile p ON p.id = place.value ORDER BY place.key`)
  const find = database.statement<[profile: number]>(
    'SELECT rowid FROM profile_word WHERE profile_word MATCH ?1 LIMIT ?2 + 0',
  )
  const sort = {
    name: sortStatement(database, ORDERS.name.column),
    '-published_at': sortStatement(database, ORDERS['-published_at'].column),
  }

  function matching(places: readonly Place[], words: readonly string[]): Place[] {
    const found = texts.all(JSON.stringify(places.map(([, , profile]) => profile)))
    return places.filter((_, index) => matchesWords(found[index]![0], words))
  }

  /** All matches of the words in any range, or `undefined` when they are not few. */
  function fewMatches(words: readonly string[]): number[] | undefined {
    // A string in FTS5's quotes followed by * is a prefix and nothing else, whatever it is made of.
    const prefixes = words.map((word) => `"${word.replaceAll('"', '""')}" *`)
    const found = find.all(prefixes.join(' AND '), few + 1)
    return found.length > few ? undefined : found.map(([profile]) => profile)
  }

  return (range, words, limit) => {
    const page: Place[] = []
    let step = Math.max(firstWalk, limit)
    for (let after = range.after, walks = 0;; walks++) {
      const places = readPage({ ...range, after }, step)
      page.push(...matching(places, words))
      if (page.length >= limit || places.length < step) return page.slice(0, limit)
      const [key, slug] = places.at(-1)!
      after = [key, slug]
      step = Math.min(step * 4, longestStep)

      const few = walks === 0 ? fewMatches(words) : undefined
      if (few === undefined) continue
      const { countries, industries } = range
      const rest = sort[range.sort].all(
        JSON.stringify(few),
        JSON.stringify([audiencesOf(range.partner), countries, industries]),
        ...after,
        range.now,
        limit - page.length,
      )
      return page.concat(rest)
    }
  }
}

function sortStatement(database: Database, column: string) {
  return database.statement<Place>(`
    SELECT l.${column}, l.slug, l.profile
    FROM json_each(?1) found CROSS JOIN listing l ON l.profile = found.value
    WHERE l.audience IN (SELECT value FROM json_each(?2, '$[0]'))
      AND (json_array_length(?2, '$[1]') = 0 OR l.country IN (SELECT value FROM json_each(?2, '$[1]')))
      AND (json_array_length(?2, '$[2]') = 0 OR l.industry IN (SELECT value FROM json_each(?2, '$[2]')))
      AND (l.${column}, l.slug) > (?3, ?4) AND l.recency >= -?5
    ORDER BY l.${column}, l.slug LIMIT ?6 + 0`)
}
