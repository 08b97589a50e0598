import { type IpRange, parseCidr } from '../lib/ip-address.ts'
import { createLruCache } from '../lib/lru.ts'
import { all, andThen, type MaybePromise } from '../lib/promise.ts'
import { type Policies, policiesFor } from '../limits/policies.ts'
import {
  BUILT_IN_MODULES,
  type Key,
  type KeyFacts,
  type Modules,
  modulesWith,
  type Partner,
  type Scope,
} from '../model.ts'
import type { FactSource, Revision } from '../ports/facts.ts'

/** A key's facts, with what is computed once for all of its requests. */
export interface Principal extends KeyFacts {
  /** All modules of the store when the facts were read. */
  readonly modules: Modules
  readonly heldScopes: ReadonlySet<Scope>
  /** The scopes that an active module of the partner needs. */
  readonly activeScopes: ReadonlySet<Scope>
  /** The ranges from which the key may be used; empty means from anywhere. */
  readonly allowedRanges: readonly IpRange[]
  readonly policies: Policies
}

/** Prepares a key and its partner for the policy. Both are frozen copies, since handlers of the host get them. */
export function preparePrincipal(
  facts: KeyFacts,
  policies: Policies,
  modules: Modules = BUILT_IN_MODULES,
): Principal {
  const { scopes, allow, limits, heldScopes, allowedRanges } = sharedPermissions(facts.key)
  const { partner, activeScopes } = sharedFacts(facts.partner, modules)
  const key = freeze({ ...facts.key, scopes, allow, limits })
  return { key, partner, modules, heldScopes, activeScopes, allowedRanges, policies }
}

/** Freezes an object and its parts: handlers of the host get them, and must not change what the policy knows. */
function freeze<T extends object>(value: T): T {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) freeze(part)
  return Object.freeze(value)
}

/**
 * What equal partners and keys with equal permissions have in common. Without it, a key takes three times the memory.
 */
const partners = createLruCache<PartnerFacts>(1_000)
const permissions = createLruCache<Permissions>(1_000)

type PartnerFacts = Pick<Principal, 'partner' | 'activeScopes'>

interface Permissions extends Pick<Key, 'scopes' | 'allow' | 'limits'> {
  readonly heldScopes: Principal['heldScopes']
  readonly allowedRanges: Principal['allowedRanges']
}

function sharedFacts(partner: Partner, modules: Modules): PartnerFacts {
  const scopes = partner.modules.flatMap((module) => modules.scopeOf(module) ?? [])
  return partners.getOrMake(JSON.stringify([partner, scopes]), () => (
    { partner: freeze(structuredClone(partner)), activeScopes: new Set(scopes) }
  ))
}

function sharedPermissions({ scopes, allow, limits }: Key): Permissions {
  return permissions.getOrMake(JSON.stringify([scopes, allow, limits]), () => ({
    ...structuredClone({ scopes, allow, limits }),
    heldScopes: new Set(scopes),
    allowedRanges: allow.map(parseCidr),
  }))
}

interface CachedPrincipal {
  readonly principal: Principal
  /** The revision of facts under which it was looked up. */
  readonly facts: string
  /** Whether a wrong secret was presented for it since. */
  wasRefused: boolean
}

/** The principals that were looked up lately, by key id; those of imported keys by the SHA-256 of their text. */
export interface PrincipalCache {
  /** Authentications that the cache decided, and look-ups in the source. */
  readonly counts: { hit: number; miss: number }
  /** The cached principal. Under another revision it may identify a key, but grants nothing. */
  peek(id: string): CachedPrincipal | undefined
  /** Whether the source may have imported keys. */
  mayHaveImports(revision: Revision): boolean
  /**
   * Looks a key up in the source; concurrent look-ups of one id are shared.
   *
   * @param importedText The text of an imported key, whose SHA-256 is `id`.
   */
  find(id: string, revision: Revision, importedText?: string): MaybePromise<Principal | undefined>
  /** Records that a key with this id, which was just looked up, has a wrong secret. */
  recordRefusal(id: string): void
  /** Whether the id is unknown, or a wrong secret was recorded for it, under this revision. */
  wasRefused(id: string, revision: Revision): boolean
}

/**
 * Unknown ids have a cache of their own, so that a flood of them cannot evict known keys. With twice as many keys,
 * a process that has seen a million takes 20 to 30 MB more.
 */
const maxKeys = 10_000

export function createPrincipalCache(
  source: Pick<FactSource, 'findKey' | 'findImportedKey' | 'listModules'>,
  limits: Parameters<typeof policiesFor>[0],
): PrincipalCache {
  // Keys with equal limits share their policies.
  const policies = createLruCache<Policies>(1_000)
  const principals = createLruCache<CachedPrincipal>(maxKeys)
  const unknownIds = createLruCache<string>(maxKeys)
  const counts = { hit: 0, miss: 0 }
  /** The revision of facts under which the source has no imported keys. */
  let withoutImports: string | undefined
  const inFlight = new Map<
    string,
    { readonly facts: string; readonly result: Promise<Principal | undefined> }
  >()

  /** The modules of the source, and the revision of facts under which they were read. */
  let known: { readonly facts: string; readonly modules: Modules } | undefined

  function readModules(facts: string): MaybePromise<Modules> {
    if (known?.facts === facts) return known.modules
    return andThen(source.listModules(), (own) => {
      known = { facts, modules: own.length === 0 ? BUILT_IN_MODULES : modulesWith(own) }
      return known.modules
    })
  }

  function remember(
    id: string,
    facts: string,
    found: KeyFacts | undefined | false,
    modules: Modules,
  ): Principal | undefined {
    if (found === false) withoutImports = facts
    if (!found) {
      principals.delete(id)
      unknownIds.set(id, facts)
      return undefined
    }
    const ownLimits = JSON.stringify([found.key.environment, found.key.limits, found.partner.limits])
    const principal = preparePrincipal(
      found,
      policies.getOrMake(ownLimits, () => policiesFor(limits, found)),
      modules,
    )
    principals.set(id, { facts, principal, wasRefused: false })
    return principal
  }

  return {
    counts,
    peek: principals.get,
    mayHaveImports: ({ facts }) => withoutImports !== facts,
    find(id, { facts }, importedText) {
      const pending = inFlight.get(id)
      if (pending !== undefined && pending.facts === facts) return pending.result
      counts.miss++
      // Stored under the revision from before the look-up, so that a change during it is noticed.
      const result = all(
        [
          importedText === undefined ? source.findKey(id) : source.findImportedKey(importedText),
          readModules(facts),
        ],
        ([found, modules]) => remember(id, facts, found, modules),
      )
      if (!(result instanceof Promise)) return result
      inFlight.set(id, { facts, result })
      const done = (): void => {
        if (inFlight.get(id)?.result === result) inFlight.delete(id)
      }
      result.then(done, done)
      return result
    },

    recordRefusal(id) {
      const cached = principals.get(id)
      if (cached !== undefined) cached.wasRefused = true
    },

    wasRefused(id, { facts }) {
      const cached = principals.get(id)
      return unknownIds.get(id) === facts || (cached?.facts === facts && cached.wasRefused)
    },
  }
}
