import { compareCodePoints } from '../../../core/content/fold.ts'
import type { ProfileSort } from '../../../core/ports.ts'
import type { Database } from './database.ts'

/** A profile's place in an order: its sort key as listings hold it, its slug and its id. */
export type Place = [key: string | number, slug: string, profile: number]

/** Which profiles, in which order, from where. */
export interface Range {
  readonly partner: string
  /** Empty for any. */
  readonly countries: readonly string[]
  /** Empty for any. */
  readonly industries: readonly string[]
  readonly sort: ProfileSort
  /** Only places after this one. */
  readonly after: readonly [key: string | number, slug: string]
  /** Only profiles that are due at this instant. */
  readonly now: number
}

/** The first places of a range, `limit` of them or all that there are. */
export type PageReader = (range: Range, limit: number) => Place[]

/** The column of listings that each order sorts by, and a key that no listing is after. */
export const ORDERS: Readonly<Record<ProfileSort, { column: string; end: string | number }>> = {
  name: { column: 'name_key', end: '\u{10ffff}' },
  '-published_at': { column: 'recency', end: Number.MAX_SAFE_INTEGER },
}

/** The audiences whose listings a partner sees. */
export function audiencesOf(partner: string): readonly string[] {
  return ['', partner]
}

/**
 * Reads pages off the indexes. Each audience, country and industry that a range combines is a stream: a stretch of
 * one index, in order. The first keys of all streams are read at once; no row of the page is beyond the `limit`-th
 * of them, so that as few rows as the page needs are read from the few streams that it comes from, and merged. Twenty
 * countries times twenty industries of a million profiles are hundreds of seeks that way, and never a scan.
 */
export function createPageReader(database: Database): PageReader {
  const readers = new Map<string, PageReader>()

  return (range, limit) => {
    const filters = [
      ...(range.countries.length > 0 ? ['country'] : []),
      ...(range.industries.length > 0 ? ['industry'] : []),
    ]
    const shape = [range.sort, ...filters].join(' ')
    let reader = readers.get(shape)
    if (reader === undefined) {
      reader = createShapeReader(database, range.sort, filters)
      readers.set(shape, reader)
    }
    return reader(range, limit)
  }
}

function createShapeReader(database: Database, sort: ProfileSort, filters: readonly string[]): PageReader {
  const { column, end } = ORDERS[sort]
  const columns = ['audience', ...filters]
  // By recency, what is not due stands before the start of the range.
  const due = (instant: string) => sort === 'name' ? `AND l.recency >= -${instant}` : ''

  // A bare parameter as LIMIT has SQLite prepare the statement anew whenever it is bound: ten times the cost.
  const heads = database.statement<[key: string | number | null, ...stream: string[]]>(`
    SELECT (
      SELECT l.${column} FROM listing l
      WHERE ${columns.map((name) => `l.${name} = ${name}.value`).join(' AND ')}
        AND (l.${column}, l.slug) > (?2, ?3) ${due('?4')}
      ORDER BY l.${column}, l.slug LIMIT 1
    ) AS head, ${columns.map((name) => `${name}.value`)}
    FROM ${columns.map((name, index) => `json_each(?1, '$[${index}]') AS ${name}`).join(' CROSS JOIN ')}
    ORDER BY head NULLS LAST LIMIT ?5 + 0`)

  const stretch = database.statement<Place>(`
    SELECT l.${column}, l.slug, l.profile FROM listing l
    WHERE ${columns.map((name, index) => `l.${name} = ?${index + 6}`).join(' AND ')}
      AND (l.${column}, l.slug) > (?1, ?2) AND l.${column} <= ?3 ${due('?4')}
    ORDER BY l.${column}, l.slug LIMIT ?5 + 0`)

  return (range, limit) => {
    const { partner, countries, industries, after, now } = range
    const values = [audiencesOf(partner), countries, industries].filter((any) => any.length > 0)
    const streams = JSON.stringify(values.map((any) => [...new Set(any)]))

    let first = heads.all(streams, ...after, now, limit + 1)
    const bound = first[limit - 1]?.[0] ?? end
    // Streams that begin with the same key are in no order: then all of those are needed, not one more than a page.
    if (first[limit]?.[0] === bound) first = heads.all(streams, ...after, now, -1)

    const places = first.flatMap(([key, ...stream]) => {
      // Streams with an earlier key have a row each that comes before all of this one's.
      const before = first.findIndex((other) => other[0] === key)
      if (key === null || before >= limit) return []
      return stretch.all(...after, bound, now, limit - before, ...stream)
    })
    return first.length < 2 ? places : places.sort(comparePlaces).slice(0, limit)
  }
}

function comparePlaces(a: Place, b: Place): number {
  return compareKeys(a[0], b[0]) || compareCodePoints(a[1], b[1])
}

function compareKeys(a: string | number, b: string | number): number {
  return typeof a === 'number' ? a - Number(b) : compareCodePoints(a, String(b))
}
