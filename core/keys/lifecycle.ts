import type { Key, KeyState } from '../model.ts'
import type { Claim } from '../ports/changes.ts'

/** The longest overlap of a rotation by a partner, in seconds. */
export const MAX_OWN_OVERLAP_SECONDS = 604_800

/**
 * The state of a key at an instant. Final states take precedence: revoked, then expired (by its expiry or by the end of
 * its overlap after rotation), then disabled, retiring and active.
 */
export function keyState(key: Pick<Key, 'state' | 'expiresAt' | 'retiresAt'>, now: number): KeyState {
  if (key.state === 'revoked') return 'revoked'
  if (key.state === 'retired') return 'expired'
  if ((key.expiresAt ?? Infinity) <= now || (key.retiresAt ?? Infinity) <= now) return 'expired'
  if (key.state === 'disabled') return 'disabled'
  return key.retiresAt === undefined ? 'active' : 'retiring'
}

/** Whether a key can never be used again. */
export function hasEnded(key: Pick<Key, 'state' | 'expiresAt' | 'retiresAt'>, now: number): boolean {
  return ['revoked', 'expired'].includes(keyState(key, now))
}

/** When a key that is not revoked ends, by its expiry or by its rotation. */
export function endOf({ expiresAt, retiresAt }: Pick<Key, 'expiresAt' | 'retiresAt'>): number | undefined {
  return retiresAt === undefined ? expiresAt : Math.min(expiresAt ?? Infinity, retiresAt)
}

/** The state of a claim as lists show it. */
export function claimState({ state, expiresAt }: Claim, now: number): Claim['state'] | 'expired' {
  return state === 'open' && expiresAt <= now ? 'expired' : state
}

/** A key that has not been rotated. */
export function newKey(
  key:
    & Omit<Key, 'state' | 'retiresAt' | 'predecessorId' | 'successorId' | 'lastUsedAt'>
    & Partial<Pick<Key, 'predecessorId' | 'lastUsedAt'>>,
): Key {
  return {
    predecessorId: undefined,
    lastUsedAt: undefined,
    ...key,
    state: 'active',
    retiresAt: undefined,
    successorId: undefined,
  }
}
