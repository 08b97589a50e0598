import type { Key, Partner } from '../../core/model.ts'
import { type FactsDraft, oldestFirst } from './apply.ts'

/** A draft over facts that are at hand, which it leaves as they are. */
export interface Draft extends FactsDraft {
  /** Those that were put, as they were put last. */
  changedPartners(): Iterable<Partner>
  /** See `changedPartners`. */
  changedKeys(): Iterable<Key>
}

/** @param keys All keys of the partners that the changes remove are among them, but for revoked ones. */
export function createDraft(
  partners: ReadonlyMap<string, Partner>,
  keys: ReadonlyMap<string, Key>,
): Draft {
  const changedPartners = new Map<string, Partner>()
  const changedKeys = new Map<string, Key>()

  function* allKeys(): Iterable<Key> {
    for (const [id, key] of keys) if (!changedKeys.has(id)) yield key
    yield* changedKeys.values()
  }

  return {
    findPartner: (slug) => changedPartners.get(slug) ?? partners.get(slug),
    findKey: (id) => changedKeys.get(id) ?? keys.get(id),
    listUnrevokedKeys: (partner) =>
      [...allKeys()].filter((key) => key.partner === partner && key.state !== 'revoked').sort(oldestFirst),
    putPartner: (partner) => void changedPartners.set(partner.slug, partner),
    putKey: (key) => void changedKeys.set(key.id, key),
    changedPartners: () => changedPartners.values(),
    changedKeys: () => changedKeys.values(),
  }
}
