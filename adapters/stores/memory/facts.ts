import type { Change } from '../../../core/admin/changes.ts'
import { compareCodePoints } from '../../../core/content/fold.ts'
import type { Key, KeyFacts, Partner } from '../../../core/model.ts'
import { absent, changedKey, changedPartner, newKey, newPartner, required } from '../changes.ts'
import { keyNote, type Note, partnerNote, revocationNote } from '../trail.ts'
import { createOverlay, type Overlay } from './overlay.ts'

/** The partners and keys of a memory store. */
export interface Facts {
  readonly partners: ReadonlyMap<string, Partner>
  readonly keys: ReadonlyMap<string, Key>
  find(id: string): KeyFacts | undefined
  /** Applies all changes or, when one throws, none. @returns What the audit trail is to say of them. */
  apply(changes: readonly Change[]): readonly Note[]
  recordUses(uses: ReadonlyMap<string, number>): void
}

export function createFacts(): Facts {
  const partners = new Map<string, Partner>()
  const keys = new Map<string, Key>()

  return {
    partners,
    keys,

    find(id) {
      const key = keys.get(id)
      return key && { key, partner: partners.get(key.partner)! }
    },

    apply(changes) {
      const draft = { partners: createOverlay(partners), keys: createOverlay(keys) }
      const notes = changes.flatMap((change) => applyTo(draft, change))
      for (const change of changes) {
        if (change.type === 'key.rotated') {
          required(draft.keys.get(change.successorId), change, 'key', change.successorId)
        }
      }
      draft.partners.commit()
      draft.keys.commit()
      return notes
    },

    recordUses(uses) {
      for (const [id, at] of uses) {
        const key = keys.get(id)
        if (key && (key.lastUsedAt === undefined || key.lastUsedAt < at)) {
          keys.set(id, { ...key, lastUsedAt: at })
        }
      }
    },
  }
}

interface Draft {
  readonly partners: Overlay<Partner>
  readonly keys: Overlay<Key>
}

function applyTo({ partners, keys }: Draft, change: Change): Note[] {
  if (change.type === 'partner.created') {
    absent(partners.get(change.partner.slug), change, 'partner', change.partner.slug)
    const after = newPartner(change.partner)
    partners.set(after.slug, after)
    return [partnerNote(change, undefined, after)]
  }
  if (change.type === 'key.issued') {
    required(partners.get(change.key.partner), change, 'partner', change.key.partner)
    absent(keys.get(change.key.id), change, 'key', change.key.id)
    const after = newKey(change.key)
    keys.set(after.id, after)
    return [keyNote(change, undefined, after)]
  }
  if ('slug' in change) {
    const before = required(partners.get(change.slug), change, 'partner', change.slug)
    const after = changedPartner(before, change)
    partners.set(change.slug, after)
    const removed = change.type === 'partner.removed' ? revokeKeys(keys, change.slug) : []
    return [partnerNote(change, before, after), ...removed]
  }
  const before = required(keys.get(change.id), change, 'key', change.id)
  const after = changedKey(before, change)
  keys.set(change.id, after)
  return [keyNote(change, before, after)]
}

function revokeKeys(keys: Overlay<Key>, partner: string): Note[] {
  return [...keys.values()]
    .filter((key) => key.partner === partner && key.state !== 'revoked')
    .sort(oldestFirst)
    .map((before) => {
      const after: Key = { ...before, state: 'revoked' }
      keys.set(after.id, after)
      return revocationNote(before, after)
    })
}

/** The order in which keys are listed. */
export function oldestFirst(a: Key, b: Key): number {
  return a.createdAt - b.createdAt || compareCodePoints(a.id, b.id)
}
