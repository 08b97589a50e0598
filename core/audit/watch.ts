import type { AuditTrail } from '../ports.ts'
import { createWriteBehind } from '../write-behind.ts'
import type { AuditEntry } from './entry.ts'

/** Tells what operators decide while the service runs. */
export interface TrailWatch {
  /** Something was changed: look behind the requests. */
  wake(): void
}

/** Long enough for the request that noticed to be answered. */
const lookDelayMs = 50
const entriesAtOnce = 100

/**
 * Watches from the end of the trail that it finds at its first look.
 *
 * @param tell Gets each entry that came since, in order.
 */
export function createTrailWatch(trail: AuditTrail, tell: (entry: AuditEntry) => void): TrailWatch {
  let seen: number | undefined

  async function look(): Promise<boolean> {
    try {
      seen ??= (await trail.auditHead()).sequence
      for (;;) {
        const entries = await trail.listAudit(seen, entriesAtOnce)
        for (const entry of entries) tell(entry)
        seen = entries.at(-1)?.sequence ?? seen
        if (entries.length < entriesAtOnce) return true
      }
    } catch {
      // Nothing is lost: the next look begins where this one ended.
      return true
    }
  }

  const behind = createWriteBehind(lookDelayMs, look)
  return { wake: behind.wake }
}
