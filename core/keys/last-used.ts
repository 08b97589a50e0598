import { createLruCache } from '../lib/lru.ts'
import { delay } from '../lib/promise.ts'
import { createWriteBehind } from '../lib/write-behind.ts'
import type { FactSource } from '../ports/facts.ts'

export type LastUsedRecorder = ReturnType<typeof createLastUsedRecorder>

const minIntervalMs = 60_000
/** Uses of further keys are not recorded while the store does not take these. */
const maxPending = 20_000
/** SQLite takes some 7 ms for them, in which a server answers nothing else. */
const maxUsesPerWrite = 1_000
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
    /** Whether a use is known that may not be in the store yet. */
    isUsed: (id: string): boolean => pending.has(id) || lastRecordedAt.get(id) !== undefined,
    flush: writeBehind.flush,
  }
}
