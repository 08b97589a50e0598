import type { ProfileQuery, ProfileSort } from '../../../core/ports.ts'
import { CARD_COLUMNS, CARD_TABLES, type CardRow } from './cards.ts'
import { cutText } from './cut-text.ts'
import { type Database, listText, type Value } from './database.ts'

/** Which profiles, in which order, from where. */
export interface Range {
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
export interface Selection {
  readonly tables: string
  readonly parameters: readonly Value[]
}

/** The column of listings that each order sorts by, its type, and a key that no listing is after. */
export const ORDERS: Readonly<Record<ProfileSort, { column: string; type: string; end: string }>> = {
  name: { column: 'name_key', type: 'text', end: `'\u{10ffff}'` },
  '-published_at': { column: 'recency', type: 'bigint', end: '9223372036854775807' },
}

/**
 * What a name is sorted by. An index has no room for more; names with the same 2,000 bytes in front go by their slugs.
 */
export function nameKey(folded: string): string {
  return cutText(folded, 2000)
}

/** What a query asks for, but for its words; `undefined` when no profile can be there. */
export function rangeOf(partner: string, query: ProfileQuery, now: number): Range | undefined {
  const countries = known(query.countries)
  const industries = known(query.industries)
  if (countries === undefined || industries === undefined) return undefined
  return { partner, countries, industries, sort: query.sort, after: startOf(query, now), now }
}

/** The values of a filter that there can be: who asks for one with a NUL has the server refuse all of the statement. */
function known(values: readonly string[]): string[] | undefined {
  const possible = [...new Set(values)].filter((value) => !value.includes('\0'))
  return values.length > 0 && possible.length === 0 ? undefined : possible
}

/** The place after which a page starts: by recency never before what is due. */
function startOf({ sort, after }: ProfileQuery, now: number): [key: string | number, slug: string] {
  if (sort === 'name') return after === undefined ? ['', ''] : [nameKey(String(after.key)), after.slug]
  return after === undefined || Number(after.key) > now ? [-now, ''] : [-after.key, after.slug]
}

/** The audiences whose listings a partner sees. */
export function audiencesOf(partner: string): string[] {
  return [...new Set(['', partner])]
}

/** How many rows are asked for where `limit` are wanted: few sizes, as the server keeps a plan for each. */
export function roundUp(limit: number): number {
  return pageSizes.find((size) => size >= limit) ?? 2 ** Math.ceil(Math.log2(limit))
}

const pageSizes = [11, 21, 51, 101]

/** The cards of the first `limit` profiles of a range, in order. */
export async function readPage(database: Database, range: Range, limit: number): Promise<CardRow[]> {
  const { tables, parameters } = selectPlaces(range, roundUp(limit))
  const rows = await database.read<CardRow>(
    `WITH ${tables}, page AS (SELECT key, slug FROM place)
    SELECT ${CARD_COLUMNS} FROM ${CARD_TABLES} ORDER BY page.key, page.slug`,
    parameters,
  )
  return rows.slice(0, limit)
}

/**
 * Selects the first places of a range as `place (audience, key, slug)`, in no order, off the indexes alone. Each
 * audience, country and industry that it combines is a stream: a stretch of one index, in order. The first places of
 * all streams are read at once; nothing that is asked for is beyond the `limit`-th of them, so that only few places are
 * read from each of the few streams that they come from, and merged.
 *
 * Each value is a select of its own, of which the server knows nothing when it plans: a plan for any values is then as
 * good as one for these, and it stops making new ones. It keeps one for every text, so limits are to be few.
 */
export function selectPlaces(range: Range, limit: number): Selection {
  const { partner, countries, industries, sort, after, now } = range
  const { column, type, end } = ORDERS[sort]
  const streams = [
    { name: 'audience', values: audiencesOf(partner) },
    { name: 'country', values: countries },
    { name: 'industry', values: industries },
  ].filter(({ values }) => values.length > 0)
  const names = streams.map(({ name }) => name)
  const lists = names.map((name, index) => `unnest((SELECT $${index + 4}::text[])) AS ${name} (${name})`)

  const stretch = (value: (name: string) => string, limit: number, bound: string) => `
    SELECT l.${column} AS key, l.slug FROM partner_api.listing l
    WHERE ${names.map((name) => `l.${name} = ${value(name)}`).join(' AND ')}
      AND (l.${column}, l.slug) > ((SELECT $1::${type}), (SELECT $2::text)) ${bound}
      AND l.recency >= (SELECT $3::bigint)
    ORDER BY l.${column}, l.slug LIMIT ${limit}`
  const last = (part: string) => `(SELECT ${part} FROM first ORDER BY key, slug OFFSET ${limit - 1} LIMIT 1)`
  const bound = `AND (l.${column}, l.slug) <= (coalesce(${last('key')}, ${end}), coalesce(${
    last('slug')
  }, ''))`

  return {
    tables: `
      first AS MATERIALIZED (
        SELECT ${names}, head.key, head.slug FROM ${lists.join(' CROSS JOIN ')}
        CROSS JOIN LATERAL (${stretch((name) => `${name}.${name}`, 1, '')}) AS head
        ORDER BY head.key, head.slug LIMIT ${limit}
      ),
      place AS (
        SELECT first.audience, found.key, found.slug FROM first
        CROSS JOIN LATERAL (${stretch((name) => `first.${name}`, limit, bound)}) AS found
        ORDER BY found.key, found.slug LIMIT ${limit}
      )`,
    parameters: [...after, -now, ...streams.map(({ values }) => listText(values))],
  }
}
