import type { AuditEntry, AuditHead, Stamp } from '../../../core/audit/entry.ts'
import { EMPTY_TRAIL } from '../../../core/audit/entry.ts'
import type { AuditTrail } from '../../../core/ports.ts'
import type { Synchronous } from '../answers.ts'
import { type Note, sealNotes } from '../trail.ts'
import { createOrderedIndex } from './ordered-index.ts'

/** The audit trail of a memory store. */
export interface Trail extends Synchronous<Omit<AuditTrail, 'auditIntruders'>> {
  readonly entries: readonly AuditEntry[]
  append(notes: readonly Note[], stamp: Stamp): void
  /** When a key was revoked for the first time. */
  revokedAt(keyId: string): number | undefined
}

export function createTrail(): Trail {
  const index = createOrderedIndex<Pick<AuditEntry, 'sequence'>, AuditEntry>((a, b) =>
    a.sequence - b.sequence
  )
  const entries = index.list()
  const revocations = new Map<string, number>()

  function auditHead(): AuditHead {
    const { sequence, seal } = entries.at(-1) ?? EMPTY_TRAIL
    return { sequence, seal }
  }

  return {
    entries,
    auditHead,
    append(notes, stamp) {
      for (const entry of sealNotes(auditHead(), notes, stamp)) {
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
