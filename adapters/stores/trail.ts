/** What the audit trail says of each change: the part of keeping it that all stores share. */
import type { Change } from '../../core/admin/changes.ts'
import { sealEntry } from '../../core/audit/chain.ts'
import type { AuditEntry, AuditHead, Stamp } from '../../core/audit/entry.ts'
import { keySnapshot, partnerSnapshot } from '../../core/audit/snapshot.ts'
import type { ContentKind } from '../../core/content/records.ts'
import type { Key, Partner } from '../../core/model.ts'
import type { ImportReport } from '../../core/ports.ts'
import { sha256 } from '../digest.ts'
import { drawId } from '../../core/draw-id.ts'
import { StoreError } from './store-error.ts'

/** What an entry says, before it has a place in the trail. */
export type Note = Pick<AuditEntry, 'type' | 'partner' | 'keyId' | 'subject' | 'before' | 'after'>

/** Slugs that the note of an import names. */
const maxSlugs = 100

export function partnerNote(change: Change, before: Partner | undefined, after: Partner): Note {
  return {
    type: change.type,
    partner: after.slug,
    keyId: undefined,
    subject: 'module' in change ? change.module : undefined,
    before: before && partnerSnapshot(before),
    after: partnerSnapshot(after),
  }
}

export function keyNote(change: Change, before: Key | undefined, after: Key): Note {
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
export function revocationNote(before: Key, after: Key): Note {
  return keyNote({ type: 'key.revoked', id: after.id }, before, after)
}

export function removalNote(kind: ContentKind, slugs: Iterable<string>): Note {
  return contentNote('content.removed', kind, JSON.stringify({ kind, slugs: [...slugs] }), undefined)
}

/** Gathers what an import changes, and makes its note. */
export interface ImportNotes {
  changed(slug: string): void
  /** @returns `undefined` when nothing was changed. */
  note(kind: ContentKind, report: ImportReport): Note | undefined
}

export function createImportNotes(): ImportNotes {
  const slugs = new Set<string>()
  return {
    changed(slug) {
      if (slugs.size < maxSlugs) slugs.add(slug)
    },
    note(kind, { created, replaced }) {
      if (created + replaced === 0) return undefined
      const after = JSON.stringify({ kind, created, replaced, slugs: [...slugs] })
      return contentNote('content.imported', kind, undefined, after)
    },
  }
}

/** The entries of notes, each sealing the one before it. */
export function sealNotes(head: AuditHead, notes: readonly Note[], { actor, at }: Stamp): AuditEntry[] {
  let last = head
  return notes.map((note) => {
    const unsealed = { ...note, sequence: last.sequence + 1, id: drawId('act_'), actor, at }
    const entry: AuditEntry = { ...unsealed, seal: sealEntry(last.seal, unsealed, sha256) }
    last = entry
    return entry
  })
}

function contentNote(
  type: Note['type'],
  subject: ContentKind,
  before: string | undefined,
  after: string | undefined,
): Note {
  return { type, partner: undefined, keyId: undefined, subject, before, after }
}

/**
 * Compares partners and keys, read back after a change was written, with what the last note about each says.
 *
 * @param read The snapshot of what a note is about.
 * @throws {StoreError} `refused` when they differ.
 */
export function checkWritten(notes: readonly Note[], read: (note: Note) => string | undefined): void {
  const last = new Map(notes.map((note) => [`${note.keyId ?? ''} ${note.partner}`, note]))
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
