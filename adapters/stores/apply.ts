/** How administrative changes are applied, one after the other: the part that all stores share. */
import type { Change } from '../../core/admin/changes.ts'
import { compareCodePoints } from '../../core/content/fold.ts'
import type { Key, Partner } from '../../core/model.ts'
import { absent, changedKey, changedPartner, newKey, newPartner, required } from './changes.ts'
import { keyNote, type Note, partnerNote, revocationNote } from './trail.ts'

/** Partners and keys as the changes so far have made them. Nothing of it is there for others yet. */
export interface FactsDraft {
  findPartner(slug: string): Partner | undefined
  findKey(id: string): Key | undefined
  /** The keys of a partner that are not revoked, oldest first, then by id. */
  listUnrevokedKeys(partner: string): readonly Key[]
  putPartner(partner: Partner): void
  putKey(key: Key): void
}

/**
 * Applies changes in order to a draft, which is of no use any more when one of them throws.
 *
 * @returns What the audit trail is to say of them.
 * @throws {StoreError} `refused` when a change needs what is not there, or makes what is there.
 */
export function applyChanges(draft: FactsDraft, changes: readonly Change[]): Note[] {
  const notes = changes.flatMap((change) => applyChange(draft, change))
  // Last, because the successor may be issued after the rotation that names it.
  for (const change of changes) {
    if (change.type !== 'key.rotated') continue
    required(draft.findKey(change.successorId), change, 'key', change.successorId)
  }
  return notes
}

/** The order in which keys are listed. */
export function oldestFirst(a: Pick<Key, 'createdAt' | 'id'>, b: Pick<Key, 'createdAt' | 'id'>): number {
  return a.createdAt - b.createdAt || compareCodePoints(a.id, b.id)
}

function applyChange(draft: FactsDraft, change: Change): Note[] {
  if (change.type === 'partner.created') {
    absent(draft.findPartner(change.partner.slug), change, 'partner', change.partner.slug)
    const after = newPartner(change.partner)
    draft.putPartner(after)
    return [partnerNote(change, undefined, after)]
  }
  if (change.type === 'key.issued') {
    required(draft.findPartner(change.key.partner), change, 'partner', change.key.partner)
    absent(draft.findKey(change.key.id), change, 'key', change.key.id)
    const after = newKey(change.key)
    draft.putKey(after)
    return [keyNote(change, undefined, after)]
  }
  if ('slug' in change) {
    const before = required(draft.findPartner(change.slug), change, 'partner', change.slug)
    const after = changedPartner(before, change)
    draft.putPartner(after)
    const revoked = change.type === 'partner.removed' ? revokeKeys(draft, change.slug) : []
    return [partnerNote(change, before, after), ...revoked]
  }
  const before = required(draft.findKey(change.id), change, 'key', change.id)
  const after = changedKey(before, change)
  draft.putKey(after)
  return [keyNote(change, before, after)]
}

function revokeKeys(draft: FactsDraft, partner: string): Note[] {
  return draft.listUnrevokedKeys(partner).map((before) => {
    const after: Key = { ...before, state: 'revoked' }
    draft.putKey(after)
    return revocationNote(before, after)
  })
}
