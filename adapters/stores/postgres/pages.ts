import type { ProfileQuery, ProfileSort } from '../../../core/ports/directory.ts'
import { CARD_COLUMNS, type CardRow, startPosition } from '../sql/tables.ts'
import type { PostgresValue } from './connection.ts'
import type { PostgresDatabase } from './database.ts'
import { listText } from './sql.ts'

/** @returns Undefined when no profile can match. */
export function toPageRange(partner: string, query: ProfileQuery, now: number): PageRange | undefined {
  const countries = possibleValues(query.countries)
  const industries = possibleValues(query.industries)
  if (countries === undefined || industries === undefined) return undefined
  return { partner, countries, industries, sort: query.sort, after: startPosition(query, now), now }
}

/** Leaves out values with a NUL, for which Postgres rejects the statement. */
function possibleValues(values: readonly string[]): string[] | undefined {
  const possible = [...new Set(values)].filter((value) => !value.includes('\0'))
  return values.length > 0 && possible.length === 0 ? undefined : possible
}

/** Few sizes, as the server caches a plan for each. */
export function roundUpPageSize(limit: number): number {
  return pageSizes.find((size) => size >= limit) ?? 2 ** Math.ceil(Math.log2(limit))
}

const pageSizes = [11, 21, 51, 101]

/** The cards of the first `limit` profiles of a range, in order. */
export async function readPage(
  database: Pick<PostgresDatabase, 'read'>,
  range: PageRange,
  limit: number,
): Promise<CardRow[]> {
  const { tables, parameters } = selectPositions(range, roundUpPageSize(limit))
  const rows = await database.read<CardRow>(
    `WITH ${tables}, page AS (SELECT key, slug FROM position)
    ${SELECT_CARDS}`,
    parameters,
  )
  return rows.slice(0, limit)
}

export interface PageRange {
  readonly partner: string
  /** Empty for any. */
  readonly countries: readonly string[]
  /** Empty for any. */
  readonly industries: readonly string[]
  readonly sort: ProfileSort
  /** The position before the page: sort key, as in listings, and slug. */
  readonly after: readonly [key: string | number, slug: string]
  /** The time at which profiles must be due, in milliseconds since the epoch. */
  readonly now: number
}

/** The column of listings for each order, its type, and a key beyond all others. */
export const SORT_COLUMNS: Readonly<Record<ProfileSort, { column: string; type: string; end: string }>> = {
  name: { column: 'name_key', type: 'text', end: `'\u{10ffff}'` },
  '-published_at': { column: 'recency', type: 'bigint', end: '9223372036854775807' },
}

/** The audiences whose listings a partner sees. */
export function audiencesOf(partner: string): string[] {
  return [...new Set(['', partner])]
}

/** A column of listings with the values that it may have, which are a parameter. */
interface Filter {
  readonly name: string
  readonly values: readonly string[]
  readonly parameter: string
}

/** @param firstParameter The number of the first filter's parameter. */
function filtersOf({ partner, countries, industries }: PageRange, firstParameter: number): Filter[] {
  const filters = [
    { name: 'audience', values: audiencesOf(partner) },
    { name: 'country', values: countries },
    { name: 'industry', values: industries },
  ]
  return filters.filter(({ values }) => values.length > 0)
    .map(({ name, values }, index) => ({ name, values, parameter: `$${firstParameter + index}` }))
}

/**
 * Selects the first positions of a range as `position (audience, key, slug)`, unordered, by index-only scans. Each
 * combination of audience, country and industry is a segment of an index, in order. The heads of all segments are
 * read first, twice as many positions in all as are needed: the `limit`-th of them bounds the page, and few
 * segments have more positions before that bound. One or two segments are read at once.
 *
 * Each value is a subselect, which the planner cannot see into: a generic plan is then as good as a custom one, and the
 * server stops making new ones. It caches one for each text: keep the number of limits small.
 */
export function selectPositions(
  range: PageRange,
  limit: number,
): { tables: string; parameters: readonly PostgresValue[] } {
  const { sort, after, now } = range
  const { column, type, end } = SORT_COLUMNS[sort]
  // By recency, profiles that are not due sort before the start of the range.
  const due = sort === 'name' ? 'AND l.recency >= (SELECT $3::bigint)' : ''
  const start = sort === 'name' ? [...after, -now] : after
  const filters = filtersOf(range, start.length + 1)
  const multiValued = filters.filter(({ name, values }) => name === 'audience' || values.length > 1)
  const names = multiValued.map(({ name }) => name)
  const segmentCount = filters.reduce((product, { values }) => product * values.length, 1)
  const headsPerSegment = Math.min(limit, 2 ** Math.max(0, Math.ceil(Math.log2(2 * limit / segmentCount))))

  function segmentSql(columnValue: (name: string) => string, limit: number, bound = ''): string {
    const conditions = filters.map((filter) => {
      const { name, parameter } = filter
      return `l.${name} = ${multiValued.includes(filter) ? columnValue(name) : `(SELECT ${parameter}::text)`}`
    })
    return `
      SELECT l.${column} AS key, l.slug FROM partner_api.listing l
      WHERE ${conditions.join(' AND ')}
        AND (l.${column}, l.slug) > ((SELECT $1::${type}), (SELECT $2::text)) ${bound} ${due}
      ORDER BY l.${column}, l.slug LIMIT ${limit}`
  }

  // Tells the planner that there are two audiences at most: it expects ten entries of any list.
  const lists = multiValued.map(({ name, parameter }) =>
    `(SELECT * FROM unnest((SELECT ${parameter}::text[])) ${
      name === 'audience' ? 'LIMIT 2' : ''
    }) AS ${name} (${name})`
  )
  const segmentHeads = `
    SELECT ${names}, head.key, head.slug FROM ${lists.join(' CROSS JOIN ')}
    CROSS JOIN LATERAL (${segmentSql((name) => `${name}.${name}`, headsPerSegment)}) AS head
    ORDER BY head.key, head.slug LIMIT ${limit}`
  const last = (part: string) => `(SELECT ${part} FROM first ORDER BY key, slug OFFSET ${limit - 1} LIMIT 1)`
  const bound = `AND (l.${column}, l.slug) <= (coalesce(${last('key')}, ${end}), coalesce(${
    last('slug')
  }, ''))`
  const merged = `
    first AS MATERIALIZED (${segmentHeads}),
    position AS (
      SELECT stream.audience, found.key, found.slug FROM (SELECT DISTINCT ${names} FROM first) AS stream
      CROSS JOIN LATERAL (${segmentSql((name) => `stream.${name}`, limit, bound)}) AS found
      ORDER BY found.key, found.slug LIMIT ${limit}
    )`

  return {
    tables: headsPerSegment === limit ? `position AS (${segmentHeads})` : merged,
    parameters: [
      ...start,
      ...filters.map((filter) => multiValued.includes(filter) ? listText(filter.values) : filter.values[0]!),
    ],
  }
}

/**
 * Joins a table `page (slug)` with the profiles and their industries. OFFSET 0 has the planner look each profile up: it
 * would rather scan ten thousand of them than look a hundred up.
 */
export const CARD_TABLES = `
  page CROSS JOIN LATERAL (
    SELECT slug, country, industry, published_at, updated_at, card
    FROM partner_api.profile WHERE slug = page.slug OFFSET 0
  ) AS p JOIN partner_api.industry i ON i.slug = p.industry`

/** The cards of a table `page (key, slug)`, in order. */
export const SELECT_CARDS = `SELECT ${CARD_COLUMNS} FROM ${CARD_TABLES} ORDER BY page.key, page.slug`
