import { readPages } from '../lib/read-pages.ts'
import { createWriteBehind } from '../lib/write-behind.ts'
import type { AuditEntry, AuditLog } from '../ports/audit.ts'

/** Long enough for the request that noticed the change to be answered first. */
const pollDelayMs = 50

/** @returns Polls in the background, and reports each entry after the end of the log at the first poll. */
export function createAuditWatcher(log: AuditLog, onEntry: (entry: AuditEntry) => void): () => void {
  let lastSequence: number | undefined

  return createWriteBehind(pollDelayMs, async () => {
    try {
      const from = lastSequence ??= (await log.auditHead()).sequence
      const entries = readPages<AuditEntry>((after, limit) => log.listAudit(after?.sequence ?? from, limit))
      for await (const entry of entries) {
        onEntry(entry)
        lastSequence = entry.sequence
      }
    } catch {
      // The next poll continues where this one ended.
    }
    return true
  }).wake
}
