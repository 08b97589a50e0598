import { createLruCache } from '../lib/lru.ts'
import { createWriteBehind } from '../lib/write-behind.ts'
import type { Key } from '../model.ts'
import type { FactSource } from '../ports/facts.ts'

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

/** Remembers when keys were used last, and writes it down behind the requests. */
export interface LastUsedRecorder {
  /** @param now Milliseconds since the epoch. */
  record(id: string, now: number): void
  /** Writes what was noted. */
  flush(): Promise<void>
}

const minIntervalMs = 60_000
/** Long enough for the answer that noted the use to be on its way. */
const writeDelayMs = 1_000

/** One write a minute and key at most: a use within the minute of a noted one is not noted. */
export function createLastUsedRecorder(source: FactSource): LastUsedRecorder {
  let pending = new Map<string, number>()
  const lastWrittenAt = createLruCache<number>(100_000)

  const writeBehind = createWriteBehind(writeDelayMs, async () => {
    const uses = pending
    pending = new Map()
    // What could not be written is not worth failing for: the next use after the minute writes again.
    if (uses.size > 0) {
      await Promise.resolve(uses).then((all) => source.recordKeyUses(all)).catch(() => undefined)
    }
    return true
  })

  return {
    record(id, now) {
      const last = lastWrittenAt.get(id)
      if (last !== undefined && now - last < minIntervalMs && now >= last) return
      lastWrittenAt.set(id, now)
      pending.set(id, now)
      writeBehind.wake()
    },
    flush: writeBehind.flush,
  }
}
