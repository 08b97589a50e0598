import type { ProfileQuery } from '../../../../core/ports.ts'
import { CARD_COLUMNS, CARD_TABLES, type CardRow } from './cards.ts'
import type { Database } from '../connection/database.ts'
import { type Range, selectPlaces } from './places.ts'

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
  if (sort === 'name') return after === undefined ? ['', ''] : [after.key, after.slug]
  return after === undefined || Number(after.key) > now ? [-now, ''] : [-after.key, after.slug]
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
