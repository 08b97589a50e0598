import type { Key } from '../model.ts'

/** The state of a key as people see it. */
export type KeyState = 'active' | 'disabled' | 'retiring' | 'expired' | 'revoked'

/**
 * The state of a key at an instant. What is final comes first: revoked, then expired (by its expiry or by
 * the end of its overlap after rotation, at once when there is none), then disabled, retiring and active.
 *
 * @param now Milliseconds since the epoch.
 */
export function keyState(key: Pick<Key, 'state' | 'expiresAt' | 'retiresAt'>, now: number): KeyState {
  if (key.state === 'revoked') return 'revoked'
  if (key.state === 'retired') return 'expired'
  if ((key.expiresAt ?? Infinity) <= now || (key.retiresAt ?? Infinity) <= now) return 'expired'
  if (key.state === 'disabled') return 'disabled'
  return key.retiresAt === undefined ? 'active' : 'retiring'
}
