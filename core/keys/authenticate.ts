import { equalDigests, type Sha256 } from '../lib/digest.ts'
import { andThen, type MaybePromise } from '../lib/promise.ts'
import type { Revision } from '../ports/facts.ts'
import { extractKeyId, isWellFormedKey } from './format.ts'
import { type KeyState, keyState } from './lifecycle.ts'
import type { Principal, PrincipalCache } from './principal.ts'

/** Tells whose key a text is. */
export interface Authenticator {
  /**
   * The principal that holds exactly this key, or `undefined` for a text that is no key, a wrong checksum, an
   * unknown id and a wrong secret alike. Whether the key is in force is for the policy to say.
   * @returns A look-up, not yet begun, for a text that was not seen to be right or wrong before.
   * @throws what the source of facts threw.
   */
  authenticate(text: string, revision: Revision): MaybePromise<Principal | undefined> | KeyLookup
  /**
   * Whether this key is known to be good: it was looked up here before and, as far as was known then, is in force.
   * Asks no store, and grants nothing.
   * @param now Milliseconds since the epoch.
   */
  isKnown(text: string, now: number): boolean
}

/** Asks the source of facts. @throws what it threw. */
export type KeyLookup = () => MaybePromise<Principal | undefined>

/** What an unknown id is compared with, so that it costs the same work as a known one. */
const dummyDigest = '0'.repeat(64)

/** @param sha256 SHA-256 in hexadecimal. @param prefix The store's key prefix. */
export function createAuthenticator(
  principals: PrincipalCache,
  sha256: Sha256,
  prefix: string,
): Authenticator {
  return {
    authenticate(text, revision) {
      const id = extractKeyId(text, prefix)
      if (id === undefined) return undefined
      const digest = sha256(text)
      const cached = principals.peek(id)
      const known = matchDigest(cached?.principal, digest)
      if (known !== undefined && cached?.facts === revision.facts) return known
      // The first wrong key for an id costs a look-up and the others none, whether the id exists or not, and whether
      // it is in use: how long a refusal takes says nothing.
      if (known === undefined && (!isWellFormedKey(text, prefix) || principals.wasRefused(id, revision))) {
        return undefined
      }
      const lookUp: KeyLookup = () =>
        andThen(principals.find(id, revision), (principal) => {
          const found = matchDigest(principal, digest)
          if (found === undefined) principals.recordRefusal(id)
          return found
        })
      return known === undefined ? lookUp : lookUp()
    },
    isKnown(text, now) {
      const id = extractKeyId(text, prefix)
      const known = id === undefined ? undefined : matchDigest(principals.peek(id)?.principal, sha256(text))
      return known !== undefined && usableStates.has(keyState(known.key, now))
    },
  }
}

const usableStates: ReadonlySet<KeyState> = new Set(['active', 'retiring'])

/** The principal if the digest is that of its key; nobody costs the same comparison. */
function matchDigest(principal: Principal | undefined, digest: string): Principal | undefined {
  return equalDigests(digest, principal === undefined ? dummyDigest : principal.key.digest)
    ? principal
    : undefined
}
