import { createWriteBehind } from '../lib/write-behind.ts'
import type { AuditEntry, AuditLog } from '../ports/audit.ts'

/** Long enough for the request that noticed the change to be answered first. */
const pollDelayMs = 50
const pageSize = 100

/**
 * Reports new entries of the audit log while the service runs, from the log's end at the first poll.
 *
 * @returns Polls in the background.
 */
export function createAuditWatcher(log: AuditLog, onEntry: (entry: AuditEntry) => void): () => void {
  let lastSequence: number | undefined

  return createWriteBehind(pollDelayMs, async () => {
    try {
      lastSequence ??= (await log.auditHead()).sequence
      for (;;) {
        const entries = await log.listAudit(lastSequence, pageSize)
        for (const entry of entries) onEntry(entry)
        lastSequence = entries.at(-1)?.sequence ?? lastSequence
        if (entries.length < pageSize) return true
      }
    } catch {
      // The next poll continues where this one ended.
      return true
    }
  }).wake
}
