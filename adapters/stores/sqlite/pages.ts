import { compareCodePoints } from '../../../core/content/fold.ts'
import type { ProfileSort } from '../../../core/ports.ts'
import type { Database, Value } from './database.ts'

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
 * one index, in order. The heads of all streams are read at once; no row of the page is beyond the `limit`-th of
 * them, so that as few rows as the page needs are read from the few streams that it comes from, and merged. Twenty
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

  const heads = database.statement<[...string[], key: string | number, slug: string]>(`
    SELECT ${columns.map((name) => `stream.${name}`)}, head.${column}, head.slug
    FROM (
      SELECT ${columns.map((name) => `${name}.value AS ${name}`)}, (
        SELECT l.profile FROM listing l
        WHERE ${columns.map((name) => `l.${name} = ${name}.value`).join(' AND ')}
          AND (l.${column}, l.slug) > (?2, ?3) ${due('?4')}
        ORDER BY l.${column}, l.slug LIMIT 1
      ) AS profile
      FROM ${columns.map((name, index) => `json_each(?1, '$[${index}]') AS ${name}`).join(' CROSS JOIN ')}
    ) stream
    CROSS JOIN listing head ON head.profile = stream.profile AND head.audience = stream.audience
    ORDER BY head.${column}, head.slug LIMIT ?5`)

  const stretch = database.statement<Place>(`
    SELECT l.${column}, l.slug, l.profile FROM listing l
    WHERE ${columns.map((name, index) => `l.${name} = ?${index + 7}`).join(' AND ')}
      AND (l.${column}, l.slug) >= (?1, ?2) AND (l.${column}, l.slug) <= (?3, ?4) ${due('?5')}
    ORDER BY l.${column}, l.slug LIMIT ?6`)

  return (range, limit) => {
    const values = [audiencesOf(range.partner), range.countries, range.industries].filter((any) =>
      any.length > 0
    )
    const first = heads.all(JSON.stringify(values), ...range.after, range.now, limit)
    const bound = first.length === limit ? first.at(-1)!.slice(-2) : [end, '']
    const places = first.flatMap((head, index) => {
      const stream = head.slice(0, -2) as Value[]
      const start = head.slice(-2) as Value[]
      // The heads before this one are before all of its rows.
      return stretch.all(...start, ...bound as Value[], range.now, limit - index, ...stream)
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
