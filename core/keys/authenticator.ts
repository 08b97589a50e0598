import { equalDigests, type Sha256 } from '../lib/digest.ts'
import { andThen, type MaybePromise } from '../lib/promise.ts'
import type { Revision } from '../ports/facts.ts'
import { extractKeyId, hasKeyShape, hasValidChecksum, IMPORTED_KEY_PATTERN } from './format.ts'
import { keyState } from './lifecycle.ts'
import type { Principal, PrincipalCache } from './principal.ts'

/** Finds the principal of a key. */
export interface Authenticator {
  /**
   * Finds the principal that holds exactly this key. Malformed text, a wrong checksum, an unknown id and a wrong secret
   * all return `undefined`, and a key that the cache can neither confirm nor refuse a look-up. Whether the key is in
   * force is up to the policy.
   */
  authenticate(text: string, revision: Revision): MaybePromise<Principal | undefined> | KeyLookup
  /** Whether this process has looked this key up and, by what it knew then, the key is in force. Grants nothing. */
  isKnown(text: string, now: number): boolean
}

/** A look-up in the store that has not started. @throws what the store threw. */
export type KeyLookup = () => MaybePromise<Principal | undefined>

/** Compared in place of an unknown key's digest, so that an unknown id costs the same work as a known one. */
const dummyDigest = '0'.repeat(64)

/** @param prefix The store's key prefix. */
export function createAuthenticator(
  principals: PrincipalCache,
  sha256: Sha256,
  prefix: string,
): Authenticator {
  function hit(principal: Principal | undefined): Principal | undefined {
    principals.counts.hit++
    return principal
  }

  /** Finds the principal whose imported key this is, as `authenticate` does. Its digest is all that is cached of it. */
  function authenticateImported(text: string, revision: Revision) {
    if (!principals.mayHaveImports(revision) || !IMPORTED_KEY_PATTERN.test(text)) return undefined
    const digest = sha256(text)
    const cached = principals.peek(digest)
    if (cached?.facts === revision.facts) return hit(cached.principal)
    if (cached === undefined && principals.wasRefused(digest, revision)) return hit(undefined)
    const lookUp: KeyLookup = () => principals.find(digest, revision, text)
    return cached === undefined ? lookUp : lookUp()
  }

  return {
    authenticate(text, revision) {
      const id = extractKeyId(text, prefix)
      if (id === undefined) return authenticateImported(text, revision)
      const digest = sha256(text)
      const cached = principals.peek(id)
      const known = matchDigest(cached?.principal, digest)
      if (known !== undefined && cached?.facts === revision.facts) return hit(known)
      if (known === undefined) {
        if (!hasKeyShape(text, prefix)) return authenticateImported(text, revision)
        // The first wrong key for an id costs a look-up and the others none, whether or not the id exists or is in use:
        // the time of a refusal reveals nothing.
        if (!hasValidChecksum(text)) return undefined
        if (principals.wasRefused(id, revision)) return hit(undefined)
      }
      const lookUp = createLookup(principals, id, digest, revision)
      return known === undefined ? lookUp : lookUp()
    },

    isKnown(text, now) {
      const digest = sha256(text)
      const id = extractKeyId(text, prefix)
      const native = id === undefined ? undefined : matchDigest(principals.peek(id)?.principal, digest)
      const known = native ?? principals.peek(digest)?.principal
      return known !== undefined && ['active', 'retiring'].includes(keyState(known.key, now))
    },
  }
}

// A function of its own: one with a closure allocates its variables for every request.
function createLookup(principals: PrincipalCache, id: string, digest: string, revision: Revision): KeyLookup {
  return () =>
    andThen(principals.find(id, revision), (principal) => {
      const found = matchDigest(principal, digest)
      if (found === undefined) principals.recordRefusal(id)
      return found
    })
}

function matchDigest(principal: Principal | undefined, digest: string): Principal | undefined {
  return equalDigests(digest, principal === undefined ? dummyDigest : principal.key.digest)
    ? principal
    : undefined
}
