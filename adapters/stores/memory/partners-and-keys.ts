import { compareCodePoints } from '../../../core/lib/text.ts'
import type { Key, Partner } from '../../../core/model.ts'
import type { Change } from '../../../core/ports/changes.ts'
import type { Store } from '../../../core/ports/store.ts'
import type { AuditRecord } from '../audit-log.ts'
import { applyChanges, factsOf, oldestFirst } from '../change-set.ts'
import { createKeySelector } from '../key-filter.ts'
import { createOrderedIndex } from './ordered-index.ts'

type Lookups = Pick<Store, 'findKey' | 'recordKeyUses' | 'findPartner' | 'listPartners' | 'listKeys'>

export function createPartnersAndKeys() {
  const partners = new Map<string, Partner>()
  const keys = new Map<string, Key>()
  const slugs = createOrderedIndex<string>(compareCodePoints)
  const keyOrder = createOrderedIndex<Pick<Key, 'createdAt' | 'id'>>(oldestFirst)

  const lookups = {
    findKey(id) {
      const key = keys.get(id)
      return key && { key, partner: partners.get(key.partner)! }
    },
    findPartner: (slug) => partners.get(slug),
    listPartners: (after, limit) => slugs.page(undefined, after, limit).map((slug) => partners.get(slug)!),
    listKeys(filter, after, limit) {
      const isSelected = createKeySelector(filter)
      return keyOrder.page(filter.partner, after, limit, ({ id }) => isSelected(keys.get(id)!))
        .map(({ id }) => keys.get(id)!)
    },
    recordKeyUses(uses) {
      for (const [id, at] of uses) {
        const key = keys.get(id)
        if (key && (key.lastUsedAt === undefined || key.lastUsedAt < at)) {
          keys.set(id, { ...key, lastUsedAt: at })
        }
      }
    },
  } satisfies Lookups

  return {
    lookups,
    keys: keys as ReadonlyMap<string, Key>,

    /** Applies all changes or, when one throws, none. @returns The audit records of the changes. */
    apply(changes: readonly Change[]): readonly AuditRecord[] {
      const changed = applyChanges(factsOf(partners, keys), changes)
      for (const [slug, partner] of changed.partners) {
        if (!partners.has(slug)) slugs.add(slug)
        partners.set(slug, partner)
      }
      for (const [id, key] of changed.keys) {
        if (!keys.has(id)) keyOrder.add({ createdAt: key.createdAt, id }, key.partner)
        keys.set(id, key)
      }
      return changed.auditRecords
    },
  }
}
