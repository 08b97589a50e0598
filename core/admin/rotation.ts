import { keyState } from '../keys/state.ts'
import type { Key } from '../model.ts'
import type { Change } from './changes.ts'
import { MAX_DURATION_MS } from './duration.ts'
import { Refusal } from './refusal.ts'
import { requireFuture, requireUsable } from './rules.ts'

/** How a key is replaced. */
export interface Rotation {
  /** Milliseconds for which the old key goes on to work, 0 to 36,525 days; by default 24 hours. */
  readonly overlapMs?: number | undefined
  /**
   * When the successor expires, milliseconds since the epoch; by default when the old key would have. A rotation
   * replaces a secret: access that was given for a time does not outlast it by being rotated.
   */
  readonly expiresAt?: number | undefined
}

const defaultOverlapMs = 86_400_000

/**
 * Replaces a key by a successor that may do the same: partner, name, environment, scopes (those out of force too),
 * addresses, limits and, unless it gets another one, expiry are those of the old key.
 *
 * @param minted What is new about the successor.
 * @throws {Refusal} `key_revoked`, `key_expired`, `key_disabled`, `key_rotated`, `invalid_duration`, `invalid_expiry`
 */
export function rotation(
  key: Key,
  minted: Pick<Key, 'id' | 'digest' | 'hint'>,
  { overlapMs = defaultOverlapMs, expiresAt }: Rotation,
  now: number,
): readonly Change[] {
  requireUsable(key, now)
  if (keyState(key, now) === 'disabled') {
    throw new Refusal(
      'key_disabled',
      `Key ${key.id} is disabled, and a successor would let its holder in again. To rotate it all the same, ` +
        `first: partner-api keys enable ${key.id}`,
    )
  }
  if (key.successorId !== undefined) {
    throw new Refusal(
      'key_rotated',
      `Key ${key.id} was rotated already. To replace its successor: partner-api keys rotate ${key.successorId}`,
    )
  }
  if (!Number.isInteger(overlapMs) || overlapMs < 0 || overlapMs > MAX_DURATION_MS) {
    throw new Refusal('invalid_duration', 'The overlap of a rotation is 0 or more, up to 36525d.')
  }
  requireFuture(expiresAt, now)
  const successor: Key = {
    ...key,
    ...minted,
    createdAt: now,
    expiresAt: expiresAt ?? key.expiresAt,
    lastUsedAt: undefined,
  }
  // A key that expires within the overlap ends there, and says so.
  const retiresAt = Math.min(now + overlapMs, key.expiresAt ?? Infinity)
  return [
    { type: 'key.issued', key: successor },
    { type: 'key.rotated', id: key.id, successorId: successor.id, retiresAt, ended: overlapMs === 0 },
  ]
}
