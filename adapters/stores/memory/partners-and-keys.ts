import { type AppliedChanges, applyChanges, oldestFirst } from '../../../core/admin/change-set.ts'
import { claimState, createKeySelector } from '../../../core/keys/lifecycle.ts'
import { compareCodePoints } from '../../../core/lib/text.ts'
import type { Key, Module, ModuleDefinition, Partner } from '../../../core/model.ts'
import type { Change, Claim, DigestScheme } from '../../../core/ports/changes.ts'
import type { Store } from '../../../core/ports/store.ts'
import { digestsOf, sha256 } from '../../digest.ts'

/** The first items after a position, in an order. */
export function pageOf<T extends P, P>(
  items: Iterable<T>,
  compare: (a: P, b: P) => number,
  after: P | undefined,
  limit: number,
): T[] {
  const later = after === undefined ? [...items] : [...items].filter((item) => compare(item, after) > 0)
  return later.sort(compare).slice(0, limit)
}

export function createPartnersAndKeys() {
  const partners = new Map<string, Partner>()
  const keys = new Map<string, Key>()
  const claims = new Map<string, Claim>()
  const modules = new Map<Module, ModuleDefinition>()
  const schemes = new Map<string, DigestScheme>()
  /** The ids of keys by digest. */
  const idsByDigest = new Map<string, string>()

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
    listModules: () => [...modules.values()],
    knownModules: () => [...modules.values()],
    findPartner: (slug) => partners.get(slug),
    listPartners: (after, limit, tag) => {
      const listed = [...partners.values()].filter(({ tags }) => tag === undefined || tags.includes(tag))
      const slugs = pageOf(listed.map(({ slug }) => slug), compareCodePoints, after, limit)
      return slugs.map((slug) => partners.get(slug)!)
    },
    listKeys: (filter, after, limit) =>
      pageOf([...keys.values()].filter(createKeySelector(filter)), oldestFirst, after, limit),
    findClaim: (id) => claims.get(id),
    listClaims({ partner, openAt }, after, limit) {
      const listed = [...claims.values()].filter((claim) =>
        claim.partner === (partner ?? claim.partner) && (!openAt || claimState(claim, openAt) === 'open')
      )
      return pageOf(listed, oldestFirst, after, limit)
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

    /** Applies all changes or, when one throws, none. */
    apply(changes: readonly Change[]): AppliedChanges {
      const changed = applyChanges({ partners, keys, modules }, changes, sha256)
      for (const [slug, partner] of changed.partners) partners.set(slug, partner)
      for (const [name, module] of changed.modules) {
        if (module === undefined) modules.delete(name)
        else modules.set(name, module)
      }
      for (const scheme of changed.schemes) schemes.set(scheme.id, scheme)
      for (const claim of changed.claims) claims.set(claim.id, claim)
      for (const [id, key] of changed.keys) {
        idsByDigest.set(key.digest, id)
        keys.set(id, key)
      }
      return changed
    },
  }
}
