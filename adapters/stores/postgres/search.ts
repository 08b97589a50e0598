import { CARD_COLUMNS, type CardRow } from '../sql/tables.ts'
import type { PostgresQuery, PostgresValue } from './connection.ts'
import type { PostgresDatabase } from './database.ts'
import { prefixQuery } from './listings.ts'
import {
  audiencesOf,
  CARD_TABLES,
  type PageRange,
  roundUpPageSize,
  SELECT_CARDS,
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

type SampleRow = [positions: number, matches: number, matchesOf: string | null, ...CardRow]

/**
 * The cards of the first `limit` profiles of a range that match all `words`, in order. A scan in order finds common
 * words soon, the full-text index rare ones, whose matches are then sorted; a sample decides. The server cancels a
 * search that takes too long.
 */
export function searchPage(
  database: Pick<PostgresDatabase, 'search'>,
  range: PageRange,
  words: readonly string[],
  limit: number,
): Promise<CardRow[]> {
  return database.search(async (query) =>
    (await search(query, range, words, roundUpPageSize(limit), limit)).slice(0, limit)
  )
}

/** @param size Matches to read, `limit` or more. */
async function search(
  query: PostgresQuery,
  range: PageRange,
  words: readonly string[],
  size: number,
  limit: number,
): Promise<CardRow[]> {
  const length = Math.max(sampleSize, size)
  const sample = await query<SampleRow>(...sampleSql(range, words, length, size))
  const [positions, matches, matchesOf] = sample[0]!
  const rows = matches === 0 ? [] : sample.map(([, , , ...card]) => card)
  if (positions < length || rows.length >= limit) return rows

  const expectedScan = limit * length / matches
  // With a million profiles, a position of a scan costs 2 µs and a row of the index 1 µs; a match in the sample
  // stands for 4,000 of them.
  if (expectedScan <= 4 * length * matches) {
    const scanLength = Math.ceil(1.5 * expectedScan / scanStep) * scanStep
    const found = await query<CardRow>(...scanSql(range, words, scanLength, size))
    if (found.length >= limit) return found
  }
  const matchesOfWords = matchesOf!.split(' ').map(Number)
  const maxTermMatches = indexRowsPerFetch * Math.max(Math.min(...matchesOfWords), 0.5)
  const indexedTerms = words.filter((_, index) => matchesOfWords[index]! <= maxTermMatches)
  return await query<CardRow>(...indexSql(range, words, indexedTerms, size))
}

type Statement = [sql: string, parameters: readonly PostgresValue[]]

/**
 * Reads all of the first `length` positions: the first `size` matches, each with the number of positions, of
 * those that match all words, and of those that match each word; the last is NULL if the page is full or
 * there are no more positions.
 */
function sampleSql(range: PageRange, words: readonly string[], length: number, size: number): Statement {
  const { tables, parameters } = selectPositions(range, length)
  const all = `(SELECT $${parameters.length + 1}::tsquery)`
  return [
    `WITH ${tables},
    seen AS MATERIALIZED (
      SELECT position.key, position.slug, listed.words FROM position CROSS JOIN LATERAL (
        SELECT l.words FROM partner_api.listing l
        WHERE l.slug = position.slug AND l.audience = position.audience OFFSET 0
      ) AS listed
    ),
    page AS (SELECT key, slug FROM seen WHERE words @@ ${all} ORDER BY key, slug LIMIT ${size}),
    counted AS (SELECT count(*) AS positions, count(*) FILTER (WHERE words @@ ${all}) AS matches FROM seen)
    SELECT counted.positions, counted.matches,
      CASE WHEN counted.positions = ${length} AND counted.matches < ${size} THEN (
        SELECT string_agg((SELECT count(*) FROM seen WHERE seen.words @@ word::tsquery)::text, ' ' ORDER BY position)
        FROM unnest((SELECT $${parameters.length + 2}::text[])) WITH ORDINALITY AS requested (word, position)
      ) END,
      ${CARD_COLUMNS}
    FROM counted LEFT JOIN (${CARD_TABLES}) ON true ORDER BY page.key, page.slug`,
    [...parameters, prefixQuery(words), listText(words.map((word) => prefixQuery([word])))],
  ]
}

/** Scans the first `length` positions up to the `size`-th match. */
function scanSql(range: PageRange, words: readonly string[], length: number, size: number): Statement {
  const { tables, parameters } = selectPositions(range, length)
  return [
    `WITH ${tables},
    page AS (
      SELECT position.key, position.slug FROM position CROSS JOIN LATERAL (
        SELECT FROM partner_api.listing l
        WHERE l.slug = position.slug AND l.audience = position.audience
          AND l.words @@ (SELECT $${parameters.length + 1}::tsquery) OFFSET 0
      ) AS match ORDER BY position.key, position.slug LIMIT ${size}
    )
    ${SELECT_CARDS}`,
    [...parameters, prefixQuery(words)],
  ]
}

/** Sorts all matches of the index. @param indexedTerms The words, one or more, to look up in it. */
function indexSql(
  range: PageRange,
  words: readonly string[],
  indexedTerms: readonly string[],
  size: number,
): Statement {
  const { column, type } = SORT_COLUMNS[range.sort]
  const { partner, countries, industries, after, now } = range
  // OFFSET 0 has the planner use the index of words, whatever the filters are.
  return [
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
    ${SELECT_CARDS}`,
    [
      prefixQuery(indexedTerms),
      listText(audiencesOf(partner)),
      ...after,
      -now,
      prefixQuery(words),
      listText(countries),
      listText(industries),
    ],
  ]
}
