/** Three ways to find the profiles of a range that match words. Each is one statement. */
import { CARD_COLUMNS, CARD_TABLES, type CardRow } from './cards.ts'
import { type Database, listText } from '../connection/database.ts'
import { prefixQuery } from './lexemes.ts'
import { audiencesOf, ORDERS, type Range, selectPlaces } from './places.ts'

/** What the first places of a range say of a search. */
export interface Look {
  /** The first matches among them, as many as a page has. */
  readonly rows: CardRow[]
  /** How many there are. */
  readonly places: number
  /** How many of them match all words. */
  readonly matches: number
  /** How many match each of the words; none where the page is full or there are no further places. */
  readonly matchesOf: readonly number[]
}

type LookRow = [places: number, matches: number, matchesOf: string | null, ...CardRow]

/** Looks at the first `length` places, each of them. @param size How many rows to give at most. */
export async function look(
  database: Pick<Database, 'read'>,
  range: Range,
  words: readonly string[],
  length: number,
  size: number,
): Promise<Look> {
  const { tables, parameters } = selectPlaces(range, length)
  const all = `(SELECT $${parameters.length + 1}::tsquery)`
  const rows = await database.read<LookRow>(
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
export function walk(
  database: Pick<Database, 'read'>,
  range: Range,
  words: readonly string[],
  length: number,
  size: number,
): Promise<CardRow[]> {
  const { tables, parameters } = selectPlaces(range, length)
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

/** Sorts all that the index has of some of the words, wherever it is. @param asked Those words, one or more. */
export function readMatches(
  database: Pick<Database, 'read'>,
  range: Range,
  words: readonly string[],
  asked: readonly string[],
  size: number,
): Promise<CardRow[]> {
  const { column, type } = ORDERS[range.sort]
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
      prefixQuery(asked),
      listText(audiencesOf(partner)),
      ...after,
      -now,
      prefixQuery(words),
      listText(countries),
      listText(industries),
    ],
  )
}
