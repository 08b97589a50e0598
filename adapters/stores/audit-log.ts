/** What the audit trail says of each change: the part of keeping it that all stores share. */
import { hashEntry, keySnapshot, partnerSnapshot } from '../../core/audit/chain.ts'
import { drawId } from '../../core/lib/ids.ts'
import type { Key, Partner } from '../../core/model.ts'
import type { AuditEntry, AuditHead } from '../../core/ports/audit.ts'
import type { AuditContext, Change } from '../../core/ports/changes.ts'
import type { ContentKind, ImportReport } from '../../core/ports/content.ts'
import { sha256 } from '../digest.ts'
import type { Value } from './row-format.ts'
import { StoreError } from './store-error.ts'

/** What an entry says, before it has a place in the trail. */
export type AuditRecord = Pick<AuditEntry, 'type' | 'partner' | 'keyId' | 'subject' | 'before' | 'after'>

/** Slugs that the note of an import names. */
const maxSlugs = 100

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

/** What the removal of a partner does to a key of it. */
export function revocationAuditRecord(before: Key, after: Key): AuditRecord {
  return keyAuditRecord({ type: 'key.revoked', id: after.id }, before, after)
}

export function removalAuditRecord(kind: ContentKind, slugs: Iterable<string>): AuditRecord {
  return contentAuditRecord('content.removed', kind, JSON.stringify({ kind, slugs: [...slugs] }), undefined)
}

/** Counts what an import changes, and lists the first of the slugs for the audit log. */
export function createImportLog(kind: ContentKind, progress?: (done: number) => void) {
  const report = { created: 0, replaced: 0, unchanged: 0 }
  const slugs: string[] = []
  let done = 0

  return {
    report: report as ImportReport,

    /** @returns Whether the row of a record differs from the stored one, which it replaces. */
    add(row: readonly Value[], stored: readonly Value[] | undefined): boolean {
      const isEqual = stored !== undefined && row.every((value, column) => value === stored[column])
      report[stored === undefined ? 'created' : isEqual ? 'unchanged' : 'replaced']++
      if (!isEqual && slugs.length < maxSlugs && !slugs.includes(String(row[0]))) slugs.push(String(row[0]))
      if (++done % 500 === 0) progress?.(done)
      return !isEqual
    },

    /** The record of the import; none when it changed nothing. */
    auditRecords(): readonly AuditRecord[] {
      const { created, replaced } = report
      if (created + replaced === 0) return []
      const after = JSON.stringify({ kind, created, replaced, slugs })
      return [contentAuditRecord('content.imported', kind, undefined, after)]
    },
  }
}

/** The entries of notes, each sealing the one before it. */
export function chainRecords(
  head: AuditHead,
  auditRecords: readonly AuditRecord[],
  { actor, at }: AuditContext,
): AuditEntry[] {
  let previous = head
  return auditRecords.map((note) => {
    const unhashed = { ...note, sequence: previous.sequence + 1, id: drawId('act_'), actor, at }
    const entry: AuditEntry = { ...unhashed, hash: hashEntry(previous.hash, unhashed, sha256) }
    previous = entry
    return entry
  })
}

function contentAuditRecord(
  type: AuditRecord['type'],
  subject: ContentKind,
  before: string | undefined,
  after: string | undefined,
): AuditRecord {
  return { type, partner: undefined, keyId: undefined, subject, before, after }
}

/**
 * Compares partners and keys, read back after a change was written, with what the last note about each says.
 *
 * @param read The snapshot of what a note is about.
 * @throws {StoreError} `refused` when they differ.
 */
export function checkWritten(
  auditRecords: readonly AuditRecord[],
  read: (note: AuditRecord) => string | undefined,
): void {
  const last = new Map(auditRecords.map((note) => [`${note.keyId ?? ''} ${note.partner}`, note]))
  for (const note of last.values()) {
    if (read(note) === note.after) continue
    const { type, keyId, partner } = note
    throw new StoreError(
      'refused',
      `Nothing was changed: the database did not keep ${type} of ${
        keyId ?? partner
      }. A trigger or rule that this ` +
        'program did not make has changed it back. To find it: partner-api audit verify',
    )
  }
}
