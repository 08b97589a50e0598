/** What a good author would write by hand for the directory over the same store, without the service around it. */
import { hash } from 'node:crypto'
import { isCountryCode } from '../../core/content/iso-codes.ts'
import { createCursors } from '../../core/http/cursor.ts'
import { fold, foldWords } from '../../core/lib/text.ts'
import type { ProfileSort } from '../../core/ports/directory.ts'
import type { Store } from '../../core/ports/store.ts'
import { toWireCard } from '../../core/routes/content.ts'
import { PARTNER } from './profiles.ts'

/** Parameters in the form that the peer's framework has made of them. */
export interface PageQuery {
  readonly q?: string | undefined
  readonly country: readonly string[]
  readonly industry: readonly string[]
  readonly sort: ProfileSort
  readonly limit: number
  readonly cursor?: string | undefined
}

export interface PeerPage {
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
}

/** Checks what a schema does not express. @returns Whether the query is valid. */
export function isValidQuery({ q, country, industry }: PageQuery): boolean {
  if (q !== undefined) {
    const length = [...q].length
    if (length < 2 || length > 100 || foldWords(q).length === 0) return false
  }
  return country.length <= 20 && industry.length <= 20 && industry.every((slug) => slug.length <= 80) &&
    country.every((code) => isCountryCode(code.toUpperCase()))
}

/** @returns Reads a page of a valid query; its promise is `undefined` for a cursor of another list. */
export function createPageReader(store: Store) {
  const cursors = createCursors(store.sha256, store.settings.cursorSecret)
  return async (query: PageQuery, search: string): Promise<PeerPage | undefined> => {
    const { q, sort, limit, cursor } = query
    const filter = {
      words: q === undefined ? [] : [...new Set(foldWords(q))].sort(),
      countries: [...new Set(query.country.map((code) => code.toUpperCase()))].sort(),
      industries: [...new Set(query.industry)].sort(),
      sort,
    }
    const bound = JSON.stringify(['2026-11-20', PARTNER, filter])
    const place = cursor === undefined ? undefined : cursors.open(bound, cursor)
    if (cursor !== undefined && place === undefined) return undefined
    const after = place && { key: place[0]!, slug: String(place[1]) }
    const found = await store.listProfiles(PARTNER, { ...filter, after, limit: limit + 1 }, Date.now())
    const rows = found.slice(0, limit)
    const last = found.length > limit ? rows.at(-1) : undefined
    const next = last === undefined
      ? null
      : cursors.seal(bound, [sort === 'name' ? fold(last.name) : last.publishedAt, last.slug])
    const text = JSON.stringify({
      data: rows.map(toWireCard),
      page: { limit, has_more: next !== null, next_cursor: next },
    })
    return { text, headers: { ...fields, ETag: etagOf(text), ...next !== null && linkTo(next, search) } }
  }
}

const fields = {
  'Content-Type': 'application/json; charset=utf-8',
  'Cache-Control': 'private, no-cache',
  Vary: 'Authorization, X-Service-Partner-Key, Service-Version',
  'X-Content-Type-Options': 'nosniff',
  'Service-Version': '2026-11-20',
  'RateLimit-Policy': '"key";q=1000000000;w=60',
}

function etagOf(text: string): string {
  return `"${hash('sha256', text, 'hex').slice(0, 32)}"`
}

function linkTo(cursor: string, search: string): { Link: string } {
  const next = new URLSearchParams(search)
  next.set('cursor', cursor)
  return { Link: `<?${next}>; rel="next"` }
}
