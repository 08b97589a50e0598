/**
 * What a good author would write by hand so that a peer does what the service does: look up the key by its hash, count the
 * request against the quota of the key, compare the partner, and add the limits and a request id to the response.
 */
import { hash } from 'node:crypto'
import { sha256 } from '../../adapters/digest.ts'
import { isCountryCode } from '../../core/content/iso-codes.ts'
import { createCursors } from '../../core/http/cursor.ts'
import { fold, foldWords } from '../../core/lib/text.ts'
import { DEFAULT_LIMITS, SERVICE_POLICY_NAMES } from '../../core/limits/policies.ts'
import type { ServicePolicyName } from '../../core/model.ts'
import type { ProfileSort } from '../../core/ports/directory.ts'
import type { Store } from '../../core/ports/store.ts'
import { toWireCard } from '../../core/routes/content.ts'
import type { Verification } from '../../core/wire.ts'
import { PARTNER } from '../support/partner.ts'
import { ENOUGH, type ReadyAnswer } from './tenant.ts'

/** A key as a peer knows it. */
export interface PeerKey {
  readonly partner: string
  readonly scopes: ReadonlySet<string>
  readonly active: boolean
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** Looks up keys by their SHA-256. There is one, with all scopes, which does not expire. */
export function createPeerKeys(key: string, partner: string) {
  const scopes = new Set(['read:profiles', 'read:countries', 'read:industries'])
  const byDigest = new Map<string, PeerKey>([
    [sha256(key), { partner, scopes, active: true, expiresAt: Infinity }],
  ])
  return { find: (text: string) => byDigest.get(sha256(text)) }
}

/** Whether a request with this key may name the partner now. */
export function mayName(key: PeerKey, partner: string | undefined): boolean {
  return key.active && Date.now() < key.expiresAt && partner === key.partner
}

/** Whether the key may read the profiles of this partner now. */
export function mayRead(key: PeerKey, partner: string | undefined): boolean {
  return mayName(key, partner) && key.scopes.has('read:profiles')
}

type PeerWindow = { count: number; endsAt: number }

/** Counts a request in a window of fixed length. @returns `undefined` over the quota. */
function countRequest(windows: Map<PeerKey, PeerWindow>, key: PeerKey, now: number): PeerWindow | undefined {
  let window = windows.get(key)
  if (window === undefined || now >= window.endsAt) {
    window = { count: 0, endsAt: now + ENOUGH.windowSeconds * 1000 }
    windows.set(key, window)
  }
  return ++window.count > ENOUGH.quota ? undefined : window
}

/** @returns Counts a request, and returns the value of `RateLimit`, or `undefined` over the quota. */
export function createPeerLimit(): (key: PeerKey) => string | undefined {
  const windows = new Map<PeerKey, PeerWindow>()
  return (key) => {
    const now = performance.now()
    const window = countRequest(windows, key, now)
    return window && `"key";r=${ENOUGH.quota - window.count};t=${Math.ceil((window.endsAt - now) / 1000)}`
  }
}

/**
 * Counts checks of keys. The part of the response that is the same for each check is an object that is made once; the
 * limits and the instant are those of the check.
 *
 * @returns The response and the value of `RateLimit`, or `undefined` over the quota.
 */
export function createPeerVerification(
  ready: ReadyAnswer,
): (key: PeerKey) => { data: Verification; limit: string } | undefined {
  const { data }: { data: Verification } = JSON.parse(ready.text)
  const windows: Readonly<Record<ServicePolicyName, Map<PeerKey, PeerWindow>>> = {
    key: new Map(),
    signup: new Map(),
    verify: new Map(),
    rotate: new Map(),
    authfail: new Map(),
  }
  const limits = { ...DEFAULT_LIMITS, key: ENOUGH, verify: ENOUGH }
  return (key) => {
    const now = performance.now()
    if (countRequest(windows.verify, key, now) === undefined) return undefined
    const shown = SERVICE_POLICY_NAMES.map((policy) => {
      const { quota, windowSeconds } = limits[policy]
      const open = windows[policy].get(key)
      const isOpen = open !== undefined && now < open.endsAt
      return {
        policy,
        quota,
        window_seconds: windowSeconds,
        remaining: isOpen ? quota - open.count : quota,
        resets_in_seconds: isOpen ? Math.ceil((open.endsAt - now) / 1000) : windowSeconds,
      }
    })
    const { remaining, resets_in_seconds: seconds } = shown[SERVICE_POLICY_NAMES.indexOf('verify')]!
    return {
      data: { ...data, limits: shown, checked_at: new Date().toISOString() },
      limit: `"verify";r=${remaining};t=${seconds}`,
    }
  }
}

let serial = 0

/** A request id that costs next to nothing. */
export function nextPeerId(): string {
  return `req_${(++serial).toString(36).padStart(20, '0')}`
}

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
  return async (query: PageQuery) => {
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
    return { data: rows.map(toWireCard), page: { limit, has_more: next !== null, next_cursor: next } }
  }
}

/** The same as text, with the header fields of the service. */
export function createPageWriter(store: Store) {
  const readPage = createPageReader(store)
  return async (query: PageQuery, search: string): Promise<PeerPage | undefined> => {
    const page = await readPage(query)
    if (page === undefined) return undefined
    const { next_cursor: next } = page.page
    const text = JSON.stringify(page)
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
