import {
  type AuditEntry,
  type AuditHead,
  type AuditLog,
  EMPTY_AUDIT_HEAD,
} from '../../../core/ports/audit.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import { type AuditRecord, chainRecords } from '../../../core/audit/records.ts'
import { sha256 } from '../../digest.ts'
import { createOrderedIndex } from './ordered-index.ts'

export function createAuditLog() {
  const index = createOrderedIndex<Pick<AuditEntry, 'sequence'>, AuditEntry>((a, b) =>
    a.sequence - b.sequence
  )
  const entries = index.list()
  const revocations = new Map<string, number>()

  function auditHead(): AuditHead {
    const { sequence, hash } = entries.at(-1) ?? EMPTY_AUDIT_HEAD
    return { sequence, hash }
  }

  const auditLog = {
    auditHead,
    listAudit: (after, limit, partner) => index.page(partner, { sequence: after }, limit),
    auditTail: (count, partner) => index.list(partner).at(-count - 1)?.sequence ?? -Infinity,
  } satisfies AuditLog

  return {
    auditLog,
    entries,
    append(auditRecords: readonly AuditRecord[], context: AuditContext): void {
      for (const entry of chainRecords(auditHead(), auditRecords, context, sha256)) {
        const { type, partner, keyId, at } = entry
        index.add(entry, partner)
        if (type === 'key.revoked' && !revocations.has(keyId!)) revocations.set(keyId!, at)
      }
    },
    revokedAt: (keyId: string) => revocations.get(keyId),
  }
}
