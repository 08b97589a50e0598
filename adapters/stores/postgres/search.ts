import { CARD_COLUMNS, type CardRow } from '../tables.ts'
import type { Database } from './database.ts'
import { listText } from './sql.ts'
import { prefixQuery } from './listings.ts'
import {
  audiencesOf,
  CARD_TABLES,
  type PageRange,
  roundUpPageSize,
  selectPositions,
  SORT_COLUMNS,
} from './pages.ts'

/** Places that every search looks at first. */
const sampleSize = 256

/** Long walks are a multiple of this: the server keeps a plan for each length. */
const scanStep = 512

/** The index gathers all of a word before it gives any: this many of another cost as much as to read one row in vain. */
const indexRowsPerFetch = 16

/**
 * The cards of the first `limit` profiles of a range that match all `words`, in order. A common word soon fills a page
 * on a walk along the order; the full-text index finds a rare one, whose matches are then sorted. The first places tell
 * which it is. The server gives up a search that takes
 * too long: its client is told to come again later.
 */
export function searchPage(
  database: Database,
  range: PageRange,
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
  range: PageRange,
  words: readonly string[],
  limit: number,
): Promise<CardRow[]> {
  const size = roundUpPageSize(limit)
  const length = Math.max(sampleSize, size)
  const { rows, places, matches, matchesOf } = await sample(database, range, words, length, size)
  if (places < length || rows.length >= limit) return rows.slice(0, limit)
  const expectedScan = limit * length / matches
  // With a million profiles, a place on a walk costs 2 µs, a row out of the index 1 µs, and of those there are 4,000
  // for each match here.
  if (expectedScan <= 4 * length * matches) {
    const found = await scanInOrder(
      database,
      range,
      words,
      Math.ceil(1.5 * expectedScan / scanStep) * scanStep,
      size,
    )
    if (found.length >= limit) return found.slice(0, limit)
  }
  const maxTermMatches = indexRowsPerFetch * Math.max(Math.min(...matchesOf), 0.5)
  const indexedTerms = words.filter((_, index) => matchesOf[index]! <= maxTermMatches)
  return (await lookupIndex(database, range, words, indexedTerms, size)).slice(0, limit)
}

/** Three ways to find the profiles of a range that match words. Each is one statement. */

/** What the first places of a range say of a search. */
export interface Sample {
  /** The first matches among them, as many as a page has. */
  readonly rows: CardRow[]
  /** How many there are. */
  readonly places: number
  /** How many of them match all words. */
  readonly matches: number
  /** How many match each of the words; none where the page is full or there are no further places. */
  readonly matchesOf: readonly number[]
}

type SampleRow = [places: number, matches: number, matchesOf: string | null, ...CardRow]

/** Looks at the first `length` places, each of them. @param size How many rows to give at most. */
export async function sample(
  database: Pick<Database, 'read'>,
  range: PageRange,
  words: readonly string[],
  length: number,
  size: number,
): Promise<Sample> {
  const { tables, parameters } = selectPositions(range, length)
  const all = `(SELECT $${parameters.length + 1}::tsquery)`
  const rows = await database.read<SampleRow>(
    `WITH ${tables},
    seen AS MATERIALIZED (
      SELECT place.key, place.slug, listed.words FROM place CROSS JOIN LATERAL (
        SELECT l.words FROM partner_api.listing l
        WHERE l.slug = place.slug AND l.audience = place.audience OFFSET 0
      ) AS listed
    ),
    page AS (SELECT key, slug FROM seen WHERE words @@ ${all} ORDER BY key, slug LIMIT ${size}),
    counted AS (SELECT count(*) AS places, count(*) FILTER (WHERE words @@ ${all}) AS matches FROM seen)
    SELECT counted.places, counted.matches,
      CASE WHEN counted.places = ${length} AND counted.matches < ${size} THEN (
        SELECT string_agg((SELECT count(*) FROM seen WHERE seen.words @@ word::tsquery)::text, ' ' ORDER BY place)
        FROM unnest((SELECT $${parameters.length + 2}::text[])) WITH ORDINALITY AS asked (word, place)
      ) END,
      ${CARD_COLUMNS}
    FROM counted LEFT JOIN (${CARD_TABLES}) ON true ORDER BY page.key, page.slug`,
    [...parameters, prefixQuery(words), listText(words.map((word) => prefixQuery([word])))],
  )
  const [places, matches, matchesOf] = rows[0]!
  return {
    rows: matches === 0 ? [] : rows.map(([, , , ...card]) => card),
    places,
    matches,
    matchesOf: matchesOf?.split(' ').map(Number) ?? [],
  }
}

/** Walks along the first `length` places, and stops at the `size`-th match. */
export function scanInOrder(
  database: Pick<Database, 'read'>,
  range: PageRange,
  words: readonly string[],
  length: number,
  size: number,
): Promise<CardRow[]> {
  const { tables, parameters } = selectPositions(range, length)
  return database.read<CardRow>(
    `WITH ${tables},
    page AS (
      SELECT place.key, place.slug FROM place CROSS JOIN LATERAL (
        SELECT FROM partner_api.listing l
        WHERE l.slug = place.slug AND l.audience = place.audience
          AND l.words @@ (SELECT $${parameters.length + 1}::tsquery) OFFSET 0
      ) AS match ORDER BY place.key, place.slug LIMIT ${size}
    )
    SELECT ${CARD_COLUMNS} FROM ${CARD_TABLES} ORDER BY page.key, page.slug`,
    [...parameters, prefixQuery(words)],
  )
}

/** Sorts all that the index has of some of the words, wherever it is. @param indexedTerms Those words, one or more. */
export function lookupIndex(
  database: Pick<Database, 'read'>,
  range: PageRange,
  words: readonly string[],
  indexedTerms: readonly string[],
  size: number,
): Promise<CardRow[]> {
  const { column, type } = SORT_COLUMNS[range.sort]
  const { partner, countries, industries, after, now } = range
  // OFFSET 0: whatever the filters are, the way to the rows is the words.
  return database.read<CardRow>(
    `WITH page AS (
      SELECT key, slug FROM (
        SELECT l.audience, l.country, l.industry, l.${column} AS key, l.slug, l.recency, l.words
        FROM partner_api.listing l WHERE l.words @@ (SELECT $1::tsquery) OFFSET 0
      ) AS match
      WHERE match.audience = ANY ($2::text[]) AND (match.key, match.slug) > ($3::${type}, $4::text)
        AND match.recency >= $5::bigint AND match.words @@ $6::tsquery
        AND ($7::text[] = '{}' OR match.country = ANY ($7::text[]))
        AND ($8::text[] = '{}' OR match.industry = ANY ($8::text[]))
      ORDER BY key, slug LIMIT ${size}
    )
    SELECT ${CARD_COLUMNS} FROM ${CARD_TABLES} ORDER BY page.key, page.slug`,
    [
      prefixQuery(indexedTerms),
      listText(audiencesOf(partner)),
      ...after,
      -now,
      prefixQuery(words),
      listText(countries),
      listText(industries),
    ],
  )
}
