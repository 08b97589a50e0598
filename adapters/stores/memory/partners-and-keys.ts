import { type AppliedChanges, applyChanges, factsOf, oldestFirst } from '../../../core/admin/change-set.ts'
import { createKeySelector } from '../../../core/keys/lifecycle.ts'
import { compareCodePoints } from '../../../core/lib/text.ts'
import type { Key, Partner } from '../../../core/model.ts'
import type { Change, DigestScheme } from '../../../core/ports/changes.ts'
import type { Store } from '../../../core/ports/store.ts'
import { digestsOf, sha256 } from '../../digest.ts'
import { createOrderedIndex } from './ordered-index.ts'

export function createPartnersAndKeys() {
  const partners = new Map<string, Partner>()
  const keys = new Map<string, Key>()
  const schemes = new Map<string, DigestScheme>()
  /** The ids of keys by digest. */
  const idsByDigest = new Map<string, string>()
  const slugs = createOrderedIndex<string>(compareCodePoints)
  const keyOrder = createOrderedIndex<Pick<Key, 'createdAt' | 'id'>>(oldestFirst)

  function findKey(id: string) {
    const key = keys.get(id)
    return key && { key, partner: partners.get(key.partner)! }
  }

  const lookups = {
    findKey,
    findImportedKey(text) {
      if (schemes.size === 0) return false
      const digest = digestsOf(text, [...schemes.values()]).find((each) => idsByDigest.has(each))
      return digest === undefined ? undefined : findKey(idsByDigest.get(digest)!)
    },
    findDigests(digests) {
      const wanted = new Set(digests)
      const found = [...keys.values()].filter(({ digest }) => wanted.has(digest.slice(-64)))
      return { schemes: [...schemes.keys()], keys: found }
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
  } satisfies Partial<Store>

  return {
    lookups,
    keys: keys as ReadonlyMap<string, Key>,

    /** Applies all changes or, when one throws, none. @returns What they came to. */
    apply(changes: readonly Change[]): AppliedChanges {
      const changed = applyChanges(factsOf(partners, keys), changes, sha256)
      for (const [slug, partner] of changed.partners) {
        if (!partners.has(slug)) slugs.add(slug)
        partners.set(slug, partner)
      }
      for (const scheme of changed.schemes) schemes.set(scheme.id, scheme)
      for (const [id, key] of changed.keys) {
        idsByDigest.set(key.digest, id)
        if (!keys.has(id)) keyOrder.add({ createdAt: key.createdAt, id }, key.partner)
        keys.set(id, key)
      }
      return changed
    },
  }
}
