import type { Change } from '../../../core/admin/changes.ts'
import type { Key, KeyFacts, Partner } from '../../../core/model.ts'
import { absent, changedKey, changedPartner, newKey, newPartner, required } from '../changes.ts'
import { createOverlay, type Overlay } from './overlay.ts'

/** The partners and keys of a memory store. */
export interface Facts {
  readonly partners: ReadonlyMap<string, Partner>
  readonly keys: ReadonlyMap<string, Key>
  find(id: string): KeyFacts | undefined
  /** Applies all changes or, when one throws, none. */
  apply(changes: readonly Change[]): void
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
      for (const change of changes) applyTo(draft, change)
      for (const change of changes) {
        if (change.type === 'key.rotated') {
          required(draft.keys.get(change.successorId), change, 'key', change.successorId)
        }
      }
      draft.partners.commit()
      draft.keys.commit()
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

function applyTo({ partners, keys }: Draft, change: Change): void {
  if (change.type === 'partner.created') {
    const { partner } = change
    absent(partners.get(partner.slug), change, 'partner', partner.slug)
    partners.set(partner.slug, newPartner(partner))
  } else if (change.type === 'key.issued') {
    const { key } = change
    required(partners.get(key.partner), change, 'partner', key.partner)
    absent(keys.get(key.id), change, 'key', key.id)
    keys.set(key.id, newKey(key))
  } else if ('slug' in change) {
    const { slug } = change
    partners.set(slug, changedPartner(required(partners.get(slug), change, 'partner', slug), change))
    if (change.type === 'partner.removed') {
      for (const key of keys.values()) {
        if (key.partner === slug) keys.set(key.id, { ...key, state: 'revoked' })
      }
    }
  } else {
    keys.set(change.id, changedKey(required(keys.get(change.id), change, 'key', change.id), change))
  }
}
