import { type IpRange, parseCidr } from '../lib/ip-address.ts'
import { createLruCache } from '../lib/lru.ts'
import { andThen, type MaybePromise } from '../lib/promise.ts'
import type { Policies } from '../limits/policies.ts'
import type { KeyFacts } from '../model.ts'
import { MODULES, type Scope } from '../policy/modules.ts'
import type { FactSource, Revision } from '../ports/facts.ts'

/** Who a request comes from, with what every request of the same key would have to work out anew. */
export interface Principal extends KeyFacts {
  /** The scopes that the key holds. */
  readonly heldScopes: ReadonlySet<Scope>
  /** The scopes that an active module of the partner needs. */
  readonly activeScopes: ReadonlySet<Scope>
  /** From where the key may be used; empty means from anywhere. */
  readonly allowedRanges: readonly IpRange[]
  readonly policies: Policies
}

/** Prepares facts for judging requests. */
export function preparePrincipal(facts: KeyFacts, policies: Policies): Principal {
  return {
    key: facts.key,
    partner: facts.partner,
    heldScopes: new Set(facts.key.scopes),
    activeScopes: new Set(facts.partner.modules.map((module) => MODULES[module].scope)),
    allowedRanges: facts.key.allow.map(parseCidr),
    policies,
  }
}

/** A principal as it was under a revision. */
export interface CachedPrincipal {
  readonly principal: Principal
  /** The revision of facts that it was looked up under. */
  readonly facts: string
  /** Whether a wrong secret was presented for it since. */
  wasRefused: boolean
}

/** The facts of the keys that were asked for lately. */
export interface PrincipalCache {
  /**
   * What was last known of a key id, without asking anybody. Under another revision it may be used to recognise
   * a key, never to grant anything.
   */
  peek(id: string): CachedPrincipal | undefined
  /**
   * Asks for the principal of a key id under a revision, or `undefined` when no key has this id. Requests for the
   * same id that come while it is looked up share one look-up.
   * @throws what the source threw.
   */
  find(id: string, revision: Revision): MaybePromise<Principal | undefined>
  /** Notes that a key with this id, which was just looked up, is wrong. */
  recordRefusal(id: string): void
  /** Whether that was noted under this revision. */
  wasRefused(id: string, revision: Revision): boolean
}

/**
 * @param prepare Makes a principal of what the source found.
 * @param maxKeys How many keys are kept; as many unknown ids are kept apart, so that a flood of them can't
 * drive out what is known.
 */
export function createPrincipalCache(
  source: FactSource,
  prepare: (facts: KeyFacts) => Principal,
  maxKeys = 100_000,
): PrincipalCache {
  const principals = createLruCache<CachedPrincipal>(maxKeys)
  const unknownIds = createLruCache<string>(maxKeys)
  const inFlight = new Map<
    string,
    { readonly facts: string; readonly answer: Promise<Principal | undefined> }
  >()

  function remember(id: string, facts: string, found: KeyFacts | undefined): Principal | undefined {
    if (found === undefined) {
      principals.delete(id)
      unknownIds.set(id, facts)
      return undefined
    }
    const principal = prepare(found)
    principals.set(id, { facts, principal, wasRefused: false })
    return principal
  }

  return {
    peek: principals.get,
    find(id, { facts }) {
      const underway = inFlight.get(id)
      if (underway !== undefined && underway.facts === facts) return underway.answer
      // Kept under the revision that was confirmed before the look-up: a change in between is seen as one.
      const answer = andThen(source.findKey(id), (found) => remember(id, facts, found))
      if (!(answer instanceof Promise)) return answer
      inFlight.set(id, { facts, answer })
      const done = (): void => {
        if (inFlight.get(id)?.answer === answer) inFlight.delete(id)
      }
      answer.then(done, done)
      return answer
    },
    recordRefusal(id) {
      const entry = principals.get(id)
      if (entry !== undefined) entry.wasRefused = true
    },
    wasRefused(id, { facts }) {
      const entry = principals.get(id)
      return unknownIds.get(id) === facts ||
        (entry !== undefined && entry.facts === facts && entry.wasRefused)
    },
  }
}
