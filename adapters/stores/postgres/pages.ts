import type { ProfileQuery, ProfileSort } from '../../../core/ports/directory.ts'
import { startPosition } from '../content-text.ts'
import { CARD_COLUMNS, type CardRow } from '../tables.ts'
import type { Database, Value } from './database.ts'
import { listText } from './sql.ts'

/** What a query asks for, but for its words; `undefined` when no profile can be there. */
export function toPageRange(partner: string, query: ProfileQuery, now: number): PageRange | undefined {
  const countries = possibleValues(query.countries)
  const industries = possibleValues(query.industries)
  if (countries === undefined || industries === undefined) return undefined
  return { partner, countries, industries, sort: query.sort, after: startPosition(query, now), now }
}

/** The values of a filter that there can be: who asks for one with a NUL has the server refuse all of the statement. */
function possibleValues(values: readonly string[]): string[] | undefined {
  const possible = [...new Set(values)].filter((value) => !value.includes('\0'))
  return values.length > 0 && possible.length === 0 ? undefined : possible
}

/** How many rows are asked for where `limit` are wanted: few sizes, as the server keeps a plan for each. */
export function roundUpPageSize(limit: number): number {
  return pageSizes.find((size) => size >= limit) ?? 2 ** Math.ceil(Math.log2(limit))
}

const pageSizes = [11, 21, 51, 101]

/** The cards of the first `limit` profiles of a range, in order. */
export async function readPage(database: Database, range: PageRange, limit: number): Promise<CardRow[]> {
  const { tables, parameters } = selectPositions(range, roundUpPageSize(limit))
  const rows = await database.read<CardRow>(
    `WITH ${tables}, page AS (SELECT key, slug FROM place)
    SELECT ${CARD_COLUMNS} FROM ${CARD_TABLES} ORDER BY page.key, page.slug`,
    parameters,
  )
  return rows.slice(0, limit)
}

/** Which profiles, in which order, from where. */
export interface PageRange {
  readonly partner: string
  /** Empty for any. */
  readonly countries: readonly string[]
  /** Empty for any. */
  readonly industries: readonly string[]
  readonly sort: ProfileSort
  /** Only places after this one: its sort key as listings hold it, and its slug. */
  readonly after: readonly [key: string | number, slug: string]
  /** Only profiles that are due at this instant. */
  readonly now: number
}

/** A part of a statement: common table expressions, and the values of its first parameters. */
export interface PositionQuery {
  readonly tables: string
  readonly parameters: readonly Value[]
}

/** The column of listings that each order sorts by, its type, and a key that no listing is after. */
export const SORT_COLUMNS: Readonly<Record<ProfileSort, { column: string; type: string; end: string }>> = {
  name: { column: 'name_key', type: 'text', end: `'\u{10ffff}'` },
  '-published_at': { column: 'recency', type: 'bigint', end: '9223372036854775807' },
}

/** The audiences whose listings a partner sees. */
export function audiencesOf(partner: string): string[] {
  return [...new Set(['', partner])]
}

/**
 * Selects the first places of a range as `place (audience, key, slug)`, in no order, off the indexes alone. Each
 * audience, country and industry that it combines is a stream: a stretch of one index, in order. A few places of each
 * are read at once, twice as many in all as are wanted: nothing beyond the `limit`-th of those belongs to the page, so
 * that what else does is soon read, from the few streams that it can be in. Where streams are two or one, the first
 * places of each are all of it.
 *
 * Each value is a select of its own, which the server knows nothing of when it plans: a plan for any values is then as
 * good as one for these, and it stops making new ones. It keeps one for every text, so limits are to be few.
 */
export function selectPositions(range: PageRange, limit: number): PositionQuery {
  const { partner, countries, industries, sort, after, now } = range
  const { column, type, end } = SORT_COLUMNS[sort]
  // By recency, what is not due stands before the start of the range.
  const due = sort === 'name' ? 'AND l.recency >= (SELECT $3::bigint)' : ''
  const start = sort === 'name' ? [...after, -now] : after
  const filters = [
    { name: 'audience', values: audiencesOf(partner) },
    { name: 'country', values: countries },
    { name: 'industry', values: industries },
  ].filter(({ values }) => values.length > 0)
    .map((filter, index) => ({ ...filter, parameter: `$${start.length + index + 1}` }))
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

  // There are two audiences at most. The server takes any list for ten.
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
    place AS (
      SELECT stream.audience, found.key, found.slug FROM (SELECT DISTINCT ${names} FROM first) AS stream
      CROSS JOIN LATERAL (${segmentSql((name) => `stream.${name}`, limit, bound)}) AS found
      ORDER BY found.key, found.slug LIMIT ${limit}
    )`

  return {
    tables: headsPerSegment === limit ? `place AS (${segmentHeads})` : merged,
    parameters: [
      ...start,
      ...filters.map((filter) => multiValued.includes(filter) ? listText(filter.values) : filter.values[0]!),
    ],
  }
}

/**
 * Joins a table `page (slug)` with the profiles and their industries. OFFSET 0 has each profile looked up: to read a
 * hundred, a server would rather read all of some ten thousand.
 */
export const CARD_TABLES = `
  page CROSS JOIN LATERAL (
    SELECT slug, country, industry, published_at, updated_at, card
    FROM partner_api.profile WHERE slug = page.slug OFFSET 0
  ) AS p JOIN partner_api.industry i ON i.slug = p.industry`
