import type { AuditEntry, AuditHead, Stamp } from '../../../core/audit/entry.ts'
import { EMPTY_TRAIL } from '../../../core/audit/entry.ts'
import { type Note, sealNotes } from '../trail.ts'

/** The audit trail of a memory store. */
export interface Trail {
  readonly entries: readonly AuditEntry[]
  append(notes: readonly Note[], stamp: Stamp): void
  listAudit(after: number, limit: number): readonly AuditEntry[]
  auditHead(): AuditHead
  /** When a key was revoked for the first time. */
  revokedAt(keyId: string): number | undefined
}

export function createTrail(): Trail {
  const entries: AuditEntry[] = []
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
        entries.push(entry)
        const { type, keyId, at } = entry
        if (type === 'key.revoked' && !revocations.has(keyId!)) revocations.set(keyId!, at)
      }
    },
    // Sequences count from 1 without a gap: an entry's is one more than its place.
    listAudit: (after, limit) => entries.slice(Math.max(0, after), Math.max(0, after) + limit),
    revokedAt: (keyId) => revocations.get(keyId),
  }
}
