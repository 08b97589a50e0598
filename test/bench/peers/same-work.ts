/**
 * What a good author would write by hand to have a peer do what the service does: find the key by its hash, count
 * the request against the key's quota, see that the partner is the key's, tell the limits and give the answer an
 * id. Everything that can be made once is.
 */
import { sha256 } from '../../../adapters/digest.ts'
import { ENOUGH } from '../data/tenant.ts'

/** A key as a peer knows it. */
export interface PeerKey {
  readonly partner: string
  readonly scopes: ReadonlySet<string>
  readonly active: boolean
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** The keys of a peer, by the SHA-256 of the whole key. */
export interface PeerKeys {
  find(text: string): PeerKey | undefined
}

/** One key, with all scopes and without an end. */
export function createPeerKeys(key: string, partner: string): PeerKeys {
  const scopes = new Set(['read:profiles', 'read:countries', 'read:industries'])
  const byDigest = new Map<string, PeerKey>([
    [sha256(key), { partner, scopes, active: true, expiresAt: Infinity }],
  ])
  return { find: (text) => byDigest.get(sha256(text)) }
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
