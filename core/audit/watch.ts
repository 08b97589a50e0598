import { createWriteBehind } from '../lib/write-behind.ts'
import type { AuditEntry, AuditLog } from '../ports/audit.ts'

/** Tells what operators decide while the service runs. */
export interface AuditWatcher {
  /** Something was changed: look behind the requests. */
  wake(): void
}

/** Long enough for the request that noticed to be answered. */
const pollDelayMs = 50
const pageSize = 100

/**
 * Watches from the end of the trail that it finds at its first look.
 *
 * @param onEntry Gets each entry that came since, in order.
 */
export function createAuditWatcher(log: AuditLog, onEntry: (entry: AuditEntry) => void): AuditWatcher {
  let lastSequence: number | undefined

  async function poll(): Promise<boolean> {
    try {
      lastSequence ??= (await log.auditHead()).sequence
      for (;;) {
        const entries = await log.listAudit(lastSequence, pageSize)
        for (const entry of entries) onEntry(entry)
        lastSequence = entries.at(-1)?.sequence ?? lastSequence
        if (entries.length < pageSize) return true
      }
    } catch {
      // Nothing is lost: the next look begins where this one ended.
      return true
    }
  }

  const writeBehind = createWriteBehind(pollDelayMs, poll)
  return { wake: writeBehind.wake }
}
