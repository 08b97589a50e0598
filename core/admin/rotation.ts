/** The changes that rotate a key, and how many keys of a chain a partner may have in force by rotating them itself. */
import { hasEnded, keyState, MAX_OWN_OVERLAP_SECONDS, newKey } from '../keys/lifecycle.ts'
import { MAX_DURATION_MS, MS_PER_DAY } from '../lib/time.ts'
import { DEFAULT_LIMITS } from '../limits/policies.ts'
import type { Key, KeyFacts } from '../model.ts'
import type { Change } from '../ports/changes.ts'
import type { Store } from '../ports/store.ts'
import { findKey } from './apply.ts'
import { commonRights, type ServiceLimits } from './successor.ts'
import { AdminError } from './error.ts'
import { requireExpiry, requireLifetime, requireNotEnded } from './validate.ts'

/** Milliseconds for which a rotated key still works by default. */
export const DEFAULT_OVERLAP_MS = MS_PER_DAY

/** The most keys of a chain that a partner has in force by rotating them itself. */
const maxKeysInForce = 3

/** How a key is replaced. */
export interface RotationOptions {
  /** Milliseconds for which the old key still works, 0 to 36,525 days; by default 24 hours. */
  readonly overlapMs?: number | undefined
  /**
   * When the successor expires, milliseconds since the epoch; by default when the old key would have, or when the
   * longest lifetime ends. Rotation replaces a secret and does not extend access that was granted for a limited time.
   */
  readonly expiresAt?: number | undefined
  /**
   * Id of the successor to replace if the key was rotated already. It must not have been used, and ends when the
   * key does, no later than before. The new one has the scopes and addresses that both allow, the earlier end
   * unless `expiresAt` is set, and of each policy the smaller limit. By default a key is rotated once.
   */
  readonly replaces?: string | undefined
  /**
   * The limits of the service, with which a key without its own is compared; by default those of a
   * service without settings.
   */
  readonly serviceLimits?: ServiceLimits | undefined
}

/** The parts of a new key that are drawn. */
export type MintedKey = Pick<Key, 'id' | 'hint' | 'digest'>

/** When a rotation takes place, and the latest end of keys that are issued now: milliseconds since the epoch. */
export interface RotationTime {
  readonly now: number
  readonly latest: number
}

/** A rotation that is to be applied. */
export interface Rotation {
  readonly changes: readonly Change[]
  /** The successor. */
  readonly key: Key
  /** When the key of the rotation ends. */
  readonly retiresAt: number
}

/**
 * The successor keeps everything of the key, scopes out of force included, but what `minted` says, and what its former
 * successor is not allowed.
 *
 * @param former The successor to replace: it ends when the key does.
 * @throws {AdminError} What `KeyAdministration.rotate` throws.
 */
export function planRotation(
  { key, partner }: KeyFacts,
  former: Key | undefined,
  minted: MintedKey,
  { overlapMs = DEFAULT_OVERLAP_MS, expiresAt, serviceLimits = DEFAULT_LIMITS }: RotationOptions,
  { now, latest }: RotationTime,
): Rotation {
  requireNotEnded(key, now)
  if (keyState(key, now) === 'disabled') {
    const remedy = { purpose: 'To rotate it, first run', command: 'keys enable', args: [key.id] }
    throw new AdminError('key_disabled', `Key ${key.id} is disabled, and its successor would not be.`, remedy)
  }
  if (key.successorId !== undefined && !isReplaceable(former, now)) throw rotatedError(key, key.successorId)
  if (!Number.isInteger(overlapMs) || overlapMs < 0 || overlapMs > MAX_DURATION_MS) {
    throw new AdminError('invalid_duration', 'The overlap of a rotation must be from 0 to 36525d.')
  }
  requireExpiry(expiresAt, now)
  requireLifetime(expiresAt ?? now, latest, now)
  const rights = commonRights(former === undefined ? [key] : [key, former], partner, serviceLimits)
  const end = expiresAt ?? Math.min(rights.expiresAt ?? Infinity, latest)
  const successor = newKey({
    ...key,
    ...rights,
    ...minted,
    predecessorId: key.id,
    createdAt: now,
    expiresAt: end === Infinity ? undefined : end,
    lastUsedAt: undefined,
  })
  const retiresAt = Math.min(now + overlapMs, key.expiresAt ?? Infinity, key.retiresAt ?? Infinity)
  const rotated = {
    type: 'key.rotated',
    successorId: successor.id,
    retiresAt,
    ended: overlapMs === 0,
  } as const
  const changes: Change[] = [{ type: 'key.issued', key: successor }, { ...rotated, id: key.id }]
  if (former !== undefined && !hasEnded(former, now)) changes.push({ ...rotated, id: former.id })
  return { changes, key: successor, retiresAt }
}

/** The successor of a successor may be used. */
function isReplaceable(former: Key | undefined, now: number): boolean {
  return former !== undefined && former.lastUsedAt === undefined && former.successorId === undefined &&
    keyState(former, now) !== 'expired'
}

/** The error for a key that has a successor. Its remedy is to rotate the successor. */
export function rotatedError({ id }: Key, successorId: string): AdminError {
  const remedy = { purpose: 'To replace its successor', command: 'keys rotate', args: [successorId] }
  return new AdminError('key_rotated', `Key ${id} was rotated already.`, remedy)
}

/**
 * The changes of a rotation by a partner with those that end former successors, the oldest first, so that few keys
 * of the chain stay in force.
 *
 * @param isUsed Whether a use of a key is known that the store may lack.
 * @throws {AdminError} `chain_full`
 */
export async function limitChain(
  store: Pick<Store, 'listChain' | 'findKey'>,
  key: Key,
  { changes, key: successor }: Rotation,
  isUsed: (id: string) => boolean,
): Promise<readonly Change[]> {
  const now = successor.createdAt
  const chain = await store.listChain(key.id, now - MAX_OWN_OVERLAP_SECONDS * 1000, now)
  const ended = new Set(changes.map((change) => change.type === 'key.rotated' && change.ended && change.id))
  const inForce = chain.filter(({ id }) => !ended.has(id))
  const excess = inForce.length + 1 - maxKeysInForce
  const revoked: Change[] = []
  for (const each of inForce) {
    if (revoked.length >= excess) break
    if (each.id === key.id || each.lastUsedAt !== undefined || isUsed(each.id)) continue
    if (!await isFormer(store, each, key)) continue
    revoked.push({ type: 'key.revoked', id: each.id, ifUnused: true })
  }
  if (revoked.length >= excess) return [...changes, ...revoked]
  const detail = `Key ${key.id} and those before and after it are ${inForce.length} keys in force.`
  throw new AdminError('chain_full', detail)
}

/** Whether the key that it was to replace has another successor, or gets one by a rotation of `rotated`. */
async function isFormer(
  store: Pick<Store, 'findKey'>,
  { id, predecessorId }: Key,
  rotated: Key,
): Promise<boolean> {
  if (predecessorId === undefined) return false
  if (predecessorId === rotated.id) return true
  return (await findKey(store, predecessorId)).key.successorId !== id
}
