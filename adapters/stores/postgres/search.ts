import { CARD_COLUMNS, type CardRow } from '../tables.ts'
import type { Database } from './database.ts'
import { prefixQuery } from './listings.ts'
import {
  audiencesOf,
  CARD_TABLES,
  type PageRange,
  roundUpPageSize,
  selectPositions,
  SORT_COLUMNS,
} from './pages.ts'
import { listText } from './sql.ts'

/** Positions that every search reads first. */
const sampleSize = 256

/** Lengths of scans are multiples of it: the server caches a plan for each. */
const scanStep = 512

/** Entries of the full-text index that cost as much as one row that does not match. */
const indexRowsPerFetch = 16

/**
 * The cards of the first `limit` profiles of a range that match all `words`, in order. A scan in order finds common words
 * soon, the full-text index rare ones, whose matches are then sorted; a sample tells which. The server cancels a search
 * that takes too long.
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
  // With a million profiles, a position of a scan costs 2 µs and a row of the index 1 µs; a match in the sample stands for
  // 4,000 of them.
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

type SampleRow = [places: number, matches: number, matchesOf: string | null, ...CardRow]

/**
 * Reads all of the first `length` positions.
 *
 * @returns The first `size` matches, how many positions there are, how many of them match all words, and how many each
 * word; the last is empty if the page is full or there are no more positions.
 */
async function sample(
  database: Pick<Database, 'read'>,
  range: PageRange,
  words: readonly string[],
  length: number,
  size: number,
) {
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

/** Scans the first `length` positions up to the `size`-th match. */
function scanInOrder(
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

/** Sorts all matches of the index. @param indexedTerms The words, one or more, to look up in it. */
function lookupIndex(
  database: Pick<Database, 'read'>,
  range: PageRange,
  words: readonly string[],
  indexedTerms: readonly string[],
  size: number,
): Promise<CardRow[]> {
  const { column, type } = SORT_COLUMNS[range.sort]
  const { partner, countries, industries, after, now } = range
  // OFFSET 0 has the planner use the index of words, whatever the filters are.
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
