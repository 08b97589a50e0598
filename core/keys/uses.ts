import { createBoundedMap } from '../cache/bounded.ts'
import type { FactSource } from '../ports.ts'
import { createWriteBehind } from '../write-behind.ts'

/** Remembers when keys were used last, and writes it down behind the requests. */
export interface KeyUses {
  /** @param now Milliseconds since the epoch. */
  note(id: string, now: number): void
  /** Writes what was noted. */
  flush(): Promise<void>
}

const writeEveryMs = 60_000
/** Long enough for the answer that noted the use to be on its way. */
const writeDelayMs = 1_000

/** One write a minute and key at most: a use within the minute of a noted one is not noted. */
export function createKeyUses(source: FactSource): KeyUses {
  let noted = new Map<string, number>()
  const written = createBoundedMap<number>(100_000)

  const behind = createWriteBehind(writeDelayMs, async () => {
    const uses = noted
    noted = new Map()
    // What could not be written is not worth failing for: the next use after the minute writes again.
    if (uses.size > 0) {
      await Promise.resolve(uses).then((all) => source.recordKeyUses(all)).catch(() => undefined)
    }
    return true
  })

  return {
    note(id, now) {
      const last = written.get(id)
      if (last !== undefined && now - last < writeEveryMs && now >= last) return
      written.set(id, now)
      noted.set(id, now)
      behind.wake()
    },
    flush: behind.flush,
  }
}
