import type { Change } from '../../../core/admin/changes.ts'
import type { Key, KeyFacts, Partner } from '../../../core/model.ts'
import { applyChanges } from '../apply.ts'
import { createDraft } from '../draft.ts'
import type { Note } from '../trail.ts'

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
      const draft = createDraft(partners, keys)
      const notes = applyChanges(draft, changes)
      for (const partner of draft.changedPartners()) partners.set(partner.slug, partner)
      for (const key of draft.changedKeys()) keys.set(key.id, key)
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
