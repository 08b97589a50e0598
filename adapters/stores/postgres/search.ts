import { CARD_COLUMNS, CARD_TABLES, type CardRow } from './cards.ts'
import { type Database, listText } from './database.ts'
import { prefixQuery } from './lexemes.ts'
import { roundUp } from './pages.ts'
import { audiencesOf, ORDERS, type Range, selectPlaces } from './places.ts'

/** Places that every search looks at first. */
const firstLook = 256

/** Long walks are a multiple of this: the server keeps a plan for each length. */
const walkStep = 512

/** What the first places of a range say of a search. */
interface Look {
  /** The first matches among them, as many as a page has. */
  readonly rows: CardRow[]
  /** Whether they are all that the range has. */
  readonly isAll: boolean
  /** How many of them match all words. */
  readonly matches: number
  /** The word that fewest of them match, as a query; `null` when there is no use for it. */
  readonly rarest: string | null
}

/**
 * The cards of the first `limit` profiles of a range that match all `words`, in order. A common word soon fills a page
 * on a walk along the order; the full-text index finds a rare one, whose matches are then sorted. The first places tell
 * which it is. Each way gives the whole page from one state of the store.
 */
export async function searchPage(
  database: Database,
  range: Range,
  words: readonly string[],
  limit: number,
): Promise<CardRow[]> {
  const size = roundUp(limit)
  const { rows, isAll, matches, rarest } = await look(database, range, words, size)
  if (isAll || rows.length >= limit || rarest === null) return rows.slice(0, limit)
  // Of a million profiles, a place on a walk costs 2 µs, a match in the index 1 µs and then there are 4,000 for each here.
  if (4 * matches ** 2 >= limit) {
    const length = 1.5 * limit * firstLook / matches
    const found = await walk(database, range, words, Math.ceil(length / walkStep) * walkStep, size)
    if (found.length >= limit) return found.slice(0, limit)
  }
  return (await readMatches(database, range, words, rarest, size)).slice(0, limit)
}

async function look(database: Database, range: Range, words: readonly string[], size: number): Promise<Look> {
  const length = Math.max(firstLook, size)
  const { tables, parameters } = selectPlaces(range, length)
  const [all, each] = [parameters.length + 1, parameters.length + 2]
  const rows = await database.read<[seen: number, matches: number, rarest: string | null, ...CardRow]>(
    `WITH ${tables},
    seen AS MATERIALIZED (
      SELECT place.key, place.slug, listed.words FROM place CROSS JOIN LATERAL (
        SELECT l.words FROM partner_api.listing l
        WHERE l.slug = place.slug AND l.audience = place.audience OFFSET 0
      ) AS listed
    ),
    page AS (
      SELECT key, slug FROM seen WHERE words @@ (SELECT $${all}::tsquery) ORDER BY key, slug LIMIT ${size}
    ),
    counted AS (
      SELECT count(*) AS places, count(*) FILTER (WHERE words @@ (SELECT $${all}::tsquery)) AS matches FROM seen
    )
    SELECT counted.places, counted.matches,
      CASE WHEN counted.places = ${length} AND counted.matches < ${size} THEN (
        SELECT word FROM unnest((SELECT $${each}::text[])) AS asked (word)
        ORDER BY (SELECT count(*) FROM seen WHERE seen.words @@ asked.word::tsquery), length(word) DESC LIMIT 1
      ) END,
      ${CARD_COLUMNS}
    FROM counted LEFT JOIN (${CARD_TABLES}) ON true ORDER BY page.key, page.slug`,
    [...parameters, prefixQuery(words), listText(words.map((word) => prefixQuery([word])))],
  )
  const [places, matches, rarest] = rows[0]!
  return {
    rows: matches === 0 ? [] : rows.map(([, , , ...card]) => card),
    isAll: places < length,
    matches,
    rarest,
  }
}

/** The first matches among the first `length` places of a range. */
function walk(
  database: Database,
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
        WHERE l.slug = place.slug AND l.audience = place.audience AND l.words @@ (SELECT $${
      parameters.length + 1
    }::tsquery) OFFSET 0
      ) AS match ORDER BY place.key, place.slug LIMIT ${size}
    )
    SELECT ${CARD_COLUMNS} FROM ${CARD_TABLES} ORDER BY page.key, page.slug`,
    [...parameters, prefixQuery(words)],
  )
}

/** All that the index has of one word, sorted. The others are looked for in what it finds: it would gather them all first. */
function readMatches(
  database: Database,
  range: Range,
  words: readonly string[],
  rarest: string,
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
      rarest,
      listText(audiencesOf(partner)),
      ...after,
      -now,
      prefixQuery(words),
      listText(countries),
      listText(industries),
    ],
  )
}
