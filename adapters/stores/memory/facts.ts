import type { Change } from '../../../core/admin/changes.ts'
import type { Key, Partner } from '../../../core/model.ts'
import { compareCodePoints } from '../../../core/content/fold.ts'
import type { Store } from '../../../core/ports.ts'
import { applyChanges, oldestFirst } from '../apply.ts'
import { createDraft } from '../draft.ts'
import type { Synchronous } from '../answers.ts'
import type { Note } from '../trail.ts'
import { createOrderedIndex } from './ordered-index.ts'

type LookUps = Synchronous<
  Pick<Store, 'findKey' | 'recordKeyUses' | 'findPartner' | 'listPartners' | 'listKeys'>
>

/** The partners and keys of a memory store. */
export interface Facts extends LookUps {
  readonly partners: ReadonlyMap<string, Partner>
  readonly keys: ReadonlyMap<string, Key>
  /** Applies all changes or, when one throws, none. @returns What the audit trail is to say of them. */
  apply(changes: readonly Change[]): readonly Note[]
}

export function createFacts(): Facts {
  const partners = new Map<string, Partner>()
  const keys = new Map<string, Key>()
  const slugs = createOrderedIndex<string>(compareCodePoints)
  const keyOrder = createOrderedIndex<Pick<Key, 'createdAt' | 'id'>>(oldestFirst)

  return {
    partners,
    keys,

    findKey(id) {
      const key = keys.get(id)
      return key && { key, partner: partners.get(key.partner)! }
    },

    findPartner: (slug) => partners.get(slug),
    listPartners: (after, limit) => slugs.page(undefined, after, limit).map((slug) => partners.get(slug)!),
    listKeys: (partner, after, limit) => keyOrder.page(partner, after, limit).map(({ id }) => keys.get(id)!),

    apply(changes) {
      const draft = createDraft(partners, keys)
      const notes = applyChanges(draft, changes)
      for (const partner of draft.changedPartners()) {
        if (!partners.has(partner.slug)) slugs.add(partner.slug)
        partners.set(partner.slug, partner)
      }
      for (const key of draft.changedKeys()) {
        if (!keys.has(key.id)) keyOrder.add({ createdAt: key.createdAt, id: key.id }, key.partner)
        keys.set(key.id, key)
      }
      return notes
    },

    recordKeyUses(uses) {
      for (const [id, at] of uses) {
        const key = keys.get(id)
        if (key && (key.lastUsedAt === undefined || key.lastUsedAt < at)) {
          keys.set(id, { ...key, lastUsedAt: at })
        }
      }
    },
  }
}
