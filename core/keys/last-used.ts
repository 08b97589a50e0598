import { createFairShare } from '../lib/fair-share.ts'
import { createLruCache } from '../lib/lru.ts'
import { delay } from '../lib/promise.ts'
import { createWriteBehind } from '../lib/write-behind.ts'
import type { Key } from '../model.ts'
import type { FactSource } from '../ports/facts.ts'

/** Records when keys were last used. */
export interface LastUsedRecorder {
  /** @param now Milliseconds since the epoch. */
  record(key: Pick<Key, 'id' | 'partner'>, now: number): void
  /** Whether a use is known that may not be in the store yet. */
  isUsed(id: string): boolean
  /** Writes what is pending. Never rejects. */
  flush(): Promise<void>
  /** Writes what is pending for the last time. Never rejects. */
  close(): Promise<void>
  /** How many uses were not recorded because no place was free, since the start. */
  dropped(): number
}

const minIntervalMs = 60_000
/** Uses of further keys are not recorded while the store does not take these: half of them of one partner at most. */
const maxPending = 20_000
/** SQLite takes some 7 ms for them, in which a server answers nothing else. */
const maxUsesPerWrite = 1_000
const writeDelayMs = 1_000

/** Writes when keys were last used in the background, once a minute and key at most. */
export function createLastUsedRecorder(source: Pick<FactSource, 'recordKeyUses'>): LastUsedRecorder {
  const pending = new Map<string, { readonly at: number; readonly partner: string }>()
  const share = createFairShare(maxPending)
  let dropped = 0
  const lastRecordedAt = createLruCache<number>(20_000)

  const writeBehind = createWriteBehind(writeDelayMs, async () => {
    for (; pending.size > 0; await delay(1)) {
      const uses = [...pending.entries().take(maxUsesPerWrite)]
      try {
        await source.recordKeyUses(new Map(uses.map(([id, { at }]) => [id, at])))
      } catch {
        return false
      }
      for (const [id, use] of uses) {
        if (pending.get(id) !== use) continue
        pending.delete(id)
        share.release(use.partner)
      }
    }
    return true
  })

  return {
    record({ id, partner }, now) {
      const last = lastRecordedAt.get(id)
      if (last !== undefined && now - last < minIntervalMs && now >= last) return
      if (!pending.has(id) && !share.take(partner)) {
        dropped++
        return
      }
      lastRecordedAt.set(id, now)
      pending.set(id, { at: now, partner })
      writeBehind.wake()
    },
    isUsed: (id) => pending.has(id) || lastRecordedAt.get(id) !== undefined,
    flush: writeBehind.flush,
    close: writeBehind.close,
    dropped: () => dropped,
  }
}
