import { after } from '../after.ts'
import { createBoundedMap } from '../cache/bounded.ts'
import type { KeyFacts } from '../model.ts'
import type { FactSource, MaybePromise, Revision } from '../ports.ts'
import type { Principal } from './principal.ts'

/** A principal as it was under a revision. */
export interface RecalledPrincipal {
  readonly principal: Principal
  /** The revision of facts that it was looked up under. */
  readonly facts: string
  /** Whether a wrong secret was presented for it since. */
  wasRefused: boolean
}

/** The facts of the keys that were asked for lately. */
export interface Principals {
  /**
   * What was last known of a key id, without asking anybody. Under another revision it may be used to recognise
   * a key, never to grant anything.
   */
  recall(id: string): RecalledPrincipal | undefined
  /**
   * Asks for the principal of a key id under a revision, or `undefined` when no key has this id. Requests for the
   * same id that come while it is looked up share one look-up.
   * @throws what the source threw.
   */
  find(id: string, revision: Revision): MaybePromise<Principal | undefined>
  /** Notes that a key with this id, which was just looked up, is wrong. */
  refuse(id: string): void
  /** Whether that was noted under this revision. */
  wasRefused(id: string, revision: Revision): boolean
}

/**
 * @param prepare Makes a principal of what the source found.
 * @param maxKeys How many keys are kept; as many unknown ids are kept apart, so that a flood of them can't
 * drive out what is known.
 */
export function createPrincipals(
  source: FactSource,
  prepare: (facts: KeyFacts) => Principal,
  maxKeys = 100_000,
): Principals {
  const known = createBoundedMap<RecalledPrincipal>(maxKeys)
  const unknown = createBoundedMap<string>(maxKeys)
  const pending = new Map<
    string,
    { readonly facts: string; readonly answer: Promise<Principal | undefined> }
  >()

  function keep(id: string, facts: string, found: KeyFacts | undefined): Principal | undefined {
    if (found === undefined) {
      known.delete(id)
      unknown.set(id, facts)
      return undefined
    }
    const principal = prepare(found)
    known.set(id, { facts, principal, wasRefused: false })
    return principal
  }

  return {
    recall: known.get,
    find(id, { facts }) {
      const underway = pending.get(id)
      if (underway !== undefined && underway.facts === facts) return underway.answer
      // Kept under the revision that was confirmed before the look-up: a change in between is seen as one.
      const answer = after(source.findKey(id), (found) => keep(id, facts, found))
      if (!(answer instanceof Promise)) return answer
      pending.set(id, { facts, answer })
      const done = (): void => {
        if (pending.get(id)?.answer === answer) pending.delete(id)
      }
      answer.then(done, done)
      return answer
    },
    refuse(id) {
      const entry = known.get(id)
      if (entry !== undefined) entry.wasRefused = true
    },
    wasRefused(id, { facts }) {
      const entry = known.get(id)
      return unknown.get(id) === facts || (entry !== undefined && entry.facts === facts && entry.wasRefused)
    },
  }
}
