import type { ProfileSort } from '../../../../core/ports.ts'
import { listText, type Value } from '../connection/database.ts'

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
export function selectPlaces(range: Range, limit: number): Selection {
  const { partner, countries, industries, sort, after, now } = range
  const { column, type, end } = ORDERS[sort]
  // By recency, what is not due stands before the start of the range.
  const due = sort === 'name' ? 'AND l.recency >= (SELECT $3::bigint)' : ''
  const start = sort === 'name' ? [...after, -now] : after
  const filters = [
    { name: 'audience', values: audiencesOf(partner) },
    { name: 'country', values: countries },
    { name: 'industry', values: industries },
  ].filter(({ values }) => values.length > 0)
    .map((filter, index) => ({ ...filter, parameter: `$${start.length + index + 1}` }))
  const many = filters.filter(({ name, values }) => name === 'audience' || values.length > 1)
  const names = many.map(({ name }) => name)
  const streams = filters.reduce((product, { values }) => product * values.length, 1)
  const each = Math.min(limit, 2 ** Math.max(0, Math.ceil(Math.log2(2 * limit / streams))))

  function stretch(stream: (name: string) => string, limit: number, bound = ''): string {
    const conditions = filters.map((filter) => {
      const { name, parameter } = filter
      return `l.${name} = ${many.includes(filter) ? stream(name) : `(SELECT ${parameter}::text)`}`
    })
    return `
      SELECT l.${column} AS key, l.slug FROM partner_api.listing l
      WHERE ${conditions.join(' AND ')}
        AND (l.${column}, l.slug) > ((SELECT $1::${type}), (SELECT $2::text)) ${bound} ${due}
      ORDER BY l.${column}, l.slug LIMIT ${limit}`
  }

  // There are two audiences at most. The server takes any list for ten.
  const lists = many.map(({ name, parameter }) =>
    `(SELECT * FROM unnest((SELECT ${parameter}::text[])) ${
      name === 'audience' ? 'LIMIT 2' : ''
    }) AS ${name} (${name})`
  )
  const heads = `
    SELECT ${names}, head.key, head.slug FROM ${lists.join(' CROSS JOIN ')}
    CROSS JOIN LATERAL (${stretch((name) => `${name}.${name}`, each)}) AS head
    ORDER BY head.key, head.slug LIMIT ${limit}`
  const last = (part: string) => `(SELECT ${part} FROM first ORDER BY key, slug OFFSET ${limit - 1} LIMIT 1)`
  const bound = `AND (l.${column}, l.slug) <= (coalesce(${last('key')}, ${end}), coalesce(${
    last('slug')
  }, ''))`
  const merged = `
    first AS MATERIALIZED (${heads}),
    place AS (
      SELECT stream.audience, found.key, found.slug FROM (SELECT DISTINCT ${names} FROM first) AS stream
      CROSS JOIN LATERAL (${stretch((name) => `stream.${name}`, limit, bound)}) AS found
      ORDER BY found.key, found.slug LIMIT ${limit}
    )`

  return {
    tables: each === limit ? `place AS (${heads})` : merged,
    parameters: [
      ...start,
      ...filters.map((filter) => many.includes(filter) ? listText(filter.values) : filter.values[0]!),
    ],
  }
}
