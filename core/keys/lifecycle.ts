import { createLruCache } from '../lib/lru.ts'
import { delay } from '../lib/promise.ts'
import { createWriteBehind } from '../lib/write-behind.ts'
import type { Key, KeyState } from '../model.ts'
import type { KeyFilter } from '../ports/changes.ts'
import type { FactSource } from '../ports/facts.ts'

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

/** Whether a filter selects a key. */
export function createKeySelector(filter: KeyFilter): (key: Key) => boolean {
  const { partner, environment, scope, states, endsBefore, unusedSince, now = Date.now() } = filter
  return (key) => {
    const state = keyState(key, now)
    const inForce = state === 'active' || state === 'retiring'
    return (partner === undefined || key.partner === partner) &&
      (environment === undefined || key.environment === environment) &&
      (scope === undefined || key.scopes.includes(scope)) &&
      (states === undefined || states.includes(state)) &&
      (endsBefore === undefined ||
        inForce && (endOf(key) ?? Infinity) < endsBefore) &&
      (unusedSince === undefined ||
        inForce && key.createdAt < unusedSince && (key.lastUsedAt ?? -Infinity) < unusedSince)
  }
}

export type LastUsedRecorder = ReturnType<typeof createLastUsedRecorder>

const minIntervalMs = 60_000
/** Uses of further keys are not recorded while the store does not take these. */
const maxPending = 20_000
/** SQLite takes some 7 ms for them, in which a server answers nothing else. */
const maxUsesPerWrite = 1_000
/** Long enough for the response of the recorded request to be sent first. */
const writeDelayMs = 1_000

/** Writes when keys were last used in the background, once a minute and key at most. */
export function createLastUsedRecorder(source: Pick<FactSource, 'recordKeyUses'>) {
  const pending = new Map<string, number>()
  const lastRecordedAt = createLruCache<number>(20_000)

  const writeBehind = createWriteBehind(writeDelayMs, async () => {
    for (; pending.size > 0; await delay(1)) {
      const uses = new Map(pending.entries().take(maxUsesPerWrite))
      try {
        await source.recordKeyUses(uses)
      } catch {
        return false
      }
      for (const [id, at] of uses) if (pending.get(id) === at) pending.delete(id)
    }
    return true
  })

  return {
    /** @param now Milliseconds since the epoch. */
    record(id: string, now: number): void {
      const last = lastRecordedAt.get(id)
      if (last !== undefined && now - last < minIntervalMs && now >= last) return
      if (pending.size >= maxPending && !pending.has(id)) return
      lastRecordedAt.set(id, now)
      pending.set(id, now)
      writeBehind.wake()
    },
    flush: writeBehind.flush,
  }
}
