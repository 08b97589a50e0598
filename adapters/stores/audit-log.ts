/** The records that changes leave in the audit log. All stores share them. */
import { hashEntry, keySnapshot, partnerSnapshot } from '../../core/audit/chain.ts'
import { drawId } from '../../core/lib/ids.ts'
import type { Key, Partner } from '../../core/model.ts'
import type { AuditEntry, AuditHead } from '../../core/ports/audit.ts'
import type { AuditContext, Change } from '../../core/ports/changes.ts'
import type { ContentKind, ImportReport } from '../../core/ports/content.ts'
import { sha256 } from '../digest.ts'

export type AuditRecord = Pick<AuditEntry, 'type' | 'partner' | 'keyId' | 'subject' | 'before' | 'after'>

export function partnerAuditRecord(change: Change, before: Partner | undefined, after: Partner): AuditRecord {
  return {
    type: change.type,
    partner: after.slug,
    keyId: undefined,
    subject: 'module' in change ? change.module : undefined,
    before: before && partnerSnapshot(before),
    after: partnerSnapshot(after),
  }
}

export function keyAuditRecord(change: Change, before: Key | undefined, after: Key): AuditRecord {
  return {
    type: change.type,
    partner: after.partner,
    keyId: after.id,
    subject: 'scope' in change ? change.scope : undefined,
    before: before && keySnapshot(before, sha256),
    after: keySnapshot(after, sha256),
  }
}

/** @param slugs Of created or replaced records: not all of a large import. */
export function importAuditRecord(
  kind: ContentKind,
  { created, replaced }: ImportReport,
  slugs: Iterable<string>,
): AuditRecord {
  const after = JSON.stringify({ kind, created, replaced, slugs: [...slugs] })
  return contentAuditRecord('content.imported', kind, undefined, after)
}

export function removalAuditRecord(kind: ContentKind, slugs: Iterable<string>): AuditRecord {
  return contentAuditRecord('content.removed', kind, JSON.stringify({ kind, slugs: [...slugs] }), undefined)
}

function contentAuditRecord(
  type: AuditRecord['type'],
  subject: ContentKind,
  before: string | undefined,
  after: string | undefined,
): AuditRecord {
  return { type, partner: undefined, keyId: undefined, subject, before, after }
}

/** The entries of records, each with a hash over its predecessor. */
export function chainRecords(
  head: AuditHead,
  auditRecords: readonly AuditRecord[],
  { actor, at }: AuditContext,
): AuditEntry[] {
  let previous = head
  return auditRecords.map((record) => {
    const unhashed = { ...record, sequence: previous.sequence + 1, id: drawId('act_'), actor, at }
    const entry: AuditEntry = { ...unhashed, hash: hashEntry(previous.hash, unhashed, sha256) }
    previous = entry
    return entry
  })
}
