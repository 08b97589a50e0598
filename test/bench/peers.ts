/**
 * What a good author would write by hand so that a peer does what the service does: look up the key by its hash, count the
 * request against the quota of the key, compare the partner, and add the limits and a request id to the response.
 */
import { sha256 } from '../../adapters/digest.ts'
import { DEFAULT_LIMITS, LIMIT_NAMES } from '../../core/limits/policies.ts'
import type { LimitName } from '../../core/model.ts'
import type { Verification } from '../../core/wire.ts'
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

/** Counts requests in windows of fixed length. @returns The value of `RateLimit`, or `undefined` over the quota. */
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

type PeerWindow = { count: number; endsAt: number }

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
  const windows: Readonly<Record<LimitName, Map<PeerKey, PeerWindow>>> = {
    key: new Map(),
    signup: new Map(),
    verify: new Map(),
    authfail: new Map(),
  }
  const limits = { ...DEFAULT_LIMITS, key: ENOUGH, verify: ENOUGH }
  return (key) => {
    const now = performance.now()
    let window = windows.verify.get(key)
    if (window === undefined || now >= window.endsAt) {
      window = { count: 0, endsAt: now + limits.verify.windowSeconds * 1000 }
      windows.verify.set(key, window)
    }
    if (++window.count > limits.verify.quota) return undefined
    const shown = LIMIT_NAMES.map((policy) => {
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
    const { remaining, resets_in_seconds: seconds } = shown[LIMIT_NAMES.indexOf('verify')]!
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
