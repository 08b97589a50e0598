import type { CardRow } from './cards.ts'
import type { Database } from '../connection/database.ts'
import { roundUp } from './pages.ts'
import type { Range } from './places.ts'
import { look, readMatches, walk } from './search-ways.ts'

/** Places that every search looks at first. */
const firstLook = 256

/** Long walks are a multiple of this: the server keeps a plan for each length. */
const walkStep = 512

/** The index gathers all of a word before it gives any: this many of another cost as much as to read one row in vain. */
const gatheredPerRow = 16

/**
 * The cards of the first `limit` profiles of a range that match all `words`, in order. A common word soon fills a page
 * on a walk along the order; the full-text index finds a rare one, whose matches are then sorted. The first places tell
 * which it is. The server gives up a search that takes
 * too long: its client is told to come again later.
 */
export function searchPage(
  database: Database,
  range: Range,
  words: readonly string[],
  limit: number,
): Promise<CardRow[]> {
  return database.transaction((read) => search({ read }, range, words, limit), {
    readOnly: true,
    isSearch: true,
  })
}

async function search(
  database: Pick<Database, 'read'>,
  range: Range,
  words: readonly string[],
  limit: number,
): Promise<CardRow[]> {
  const size = roundUp(limit)
  const length = Math.max(firstLook, size)
  const { rows, places, matches, matchesOf } = await look(database, range, words, length, size)
  if (places < length || rows.length >= limit) return rows.slice(0, limit)
  const needed = limit * length / matches
  // With a million profiles, a place on a walk costs 2 µs, a row out of the index 1 µs, and of those there are 4,000
  // for each match here.
  if (needed <= 4 * length * matches) {
    const found = await walk(database, range, words, Math.ceil(1.5 * needed / walkStep) * walkStep, size)
    if (found.length >= limit) return found.slice(0, limit)
  }
  const most = gatheredPerRow * Math.max(Math.min(...matchesOf), 0.5)
  const worthAsking = words.filter((_, index) => matchesOf[index]! <= most)
  return (await readMatches(database, range, words, worthAsking, size)).slice(0, limit)
}
