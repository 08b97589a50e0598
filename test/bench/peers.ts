/**
 * What a good author would write by hand to have a peer do what the service does: find the key by its hash, count
 * the request against the key's quota, see that the partner is the key's, tell the limits and give the answer an
 * id. Everything that can be made once is.
 */
import { sha256 } from '../../adapters/digest.ts'
import { isCountryCode } from '../../core/content/iso-codes.ts'
import { fold } from '../../core/lib/text.ts'
import type { ProfileSort } from '../../core/ports/directory.ts'
import type { Store } from '../../core/ports/store.ts'
import { toWireCard } from '../../core/routes/profiles.ts'
import { ENOUGH } from './tenant.ts'

/** A key as a peer knows it. */
export interface PeerKey {
  readonly partner: string
  readonly scopes: ReadonlySet<string>
  readonly active: boolean
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** Finds keys by the SHA-256 of the whole key. There is one, with all scopes and without an end. */
export function createPeerKeys(key: string, partner: string) {
  const scopes = new Set(['read:profiles', 'read:countries', 'read:industries'])
  const byDigest = new Map<string, PeerKey>([
    [sha256(key), { partner, scopes, active: true, expiresAt: Infinity }],
  ])
  return { find: (text: string) => byDigest.get(sha256(text)) }
}

/** Whether the key may read this partner's profiles now. */
export function mayRead(key: PeerKey, partner: string | undefined): boolean {
  return key.active && Date.now() < key.expiresAt && partner === key.partner &&
    key.scopes.has('read:profiles')
}

/** Counts requests in windows of fixed length. @returns What `RateLimit` says, or `undefined` when it is too much. */
export function createPeerLimit(): (key: PeerKey) => string | undefined {
  const windows = new Map<PeerKey, { count: number; endsAt: number }>()
  return (key) => {
    const now = performance.now()
    let window = windows.get(key)
    if (window === undefined || now >= window.endsAt) {
      window = { count: 0, endsAt: now + ENOUGH.windowSeconds * 1000 }
      windows.set(key, window)
    }
    if (++window.count > ENOUGH.quota) return undefined
    return `"key";r=${ENOUGH.quota - window.count};t=${Math.ceil((window.endsAt - now) / 1000)}`
  }
}

let serial = 0

/** An id for an answer, as cheap as they come. */
export function nextPeerId(): string {
  return `req_${(++serial).toString(36).padStart(20, '0')}`
}

/** The parameters of the directory, judged. */
interface Listing {
  readonly countries: readonly string[]
  readonly industries: readonly string[]
  readonly sort: ProfileSort
  readonly limit: number
}

export async function answerListing(store: Store, partner: string, listing: Listing) {
  const { limit, sort } = listing
  const query = { ...listing, words: [], after: undefined, limit: limit + 1 }
  const found = await store.listProfiles(partner, query, Date.now())
  const shown = found.slice(0, limit)
  const last = found.length > limit ? shown.at(-1) : undefined
  const position = last && JSON.stringify([sort === 'name' ? fold(last.name) : last.publishedAt, last.slug])
  const cursor = position === undefined ? null : Buffer.from(position).toString('base64url')
  return { data: shown.map(toWireCard), page: { limit, has_more: cursor !== null, next_cursor: cursor } }
}

/** Judges what a query says, each name with its values. @returns undefined when something is wrong. */
export function judgeListing(query: Readonly<Record<string, readonly string[]>>): Listing | undefined {
  for (const name in query) {
    if (!known.has(name)) return undefined
    if (query[name]!.length > (name === 'country' || name === 'industry' ? 20 : 1)) return undefined
  }
  const countries = (query['country'] ?? []).map((code) => code.toUpperCase())
  const sort = query['sort']?.[0] ?? 'name'
  const limit = Number(query['limit']?.[0] ?? 20)
  if (!countries.every(isCountryCode)) return undefined
  if (sort !== 'name' && sort !== '-published_at') return undefined
  if (!Number.isInteger(limit) || limit < 1 || limit > 100) return undefined
  return { countries, industries: query['industry'] ?? [], sort, limit }
}

const known = new Set(['partner', 'country', 'industry', 'sort', 'limit'])
