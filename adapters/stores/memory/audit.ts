import type { Synchronous } from '../../../core/lib/promise.ts'
import {
  type AuditEntry,
  type AuditHead,
  type AuditLog,
  EMPTY_AUDIT_HEAD,
} from '../../../core/ports/audit.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import { type AuditRecord, chainRecords } from '../audit-log.ts'
import { createOrderedIndex } from './ordered-index.ts'

/** The audit trail of a memory store. */
export interface MemoryAuditLog extends Synchronous<Omit<AuditLog, 'auditIntruders'>> {
  readonly entries: readonly AuditEntry[]
  append(notes: readonly AuditRecord[], stamp: AuditContext): void
  /** When a key was revoked for the first time. */
  revokedAt(keyId: string): number | undefined
}

export function createAuditLog(): MemoryAuditLog {
  const index = createOrderedIndex<Pick<AuditEntry, 'sequence'>, AuditEntry>((a, b) =>
    a.sequence - b.sequence
  )
  const entries = index.list()
  const revocations = new Map<string, number>()

  function auditHead(): AuditHead {
    const { sequence, hash: seal } = entries.at(-1) ?? EMPTY_AUDIT_HEAD
    return { sequence, hash: seal }
  }

  return {
    entries,
    auditHead,
    append(notes, stamp) {
      for (const entry of chainRecords(auditHead(), notes, stamp)) {
        const { type, partner, keyId, at } = entry
        index.add(entry, partner)
        if (type === 'key.revoked' && !revocations.has(keyId!)) revocations.set(keyId!, at)
      }
    },
    listAudit: (after, limit, partner) => index.page(partner, { sequence: after }, limit),
    auditTail: (count, partner) => index.list(partner).at(-count - 1)?.sequence ?? -Infinity,
    revokedAt: (keyId) => revocations.get(keyId),
  }
}
