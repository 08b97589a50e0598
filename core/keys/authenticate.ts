import { after } from '../after.ts'
import { equalDigests, type Sha256 } from '../digest.ts'
import type { MaybePromise, Revision } from '../ports.ts'
import { hasValidChecksum, parseKey } from './format.ts'
import type { Principal } from './principal.ts'
import type { Principals } from './principals.ts'

/** Tells whose key a text is. */
export interface Authenticator {
  /**
   * The principal that holds exactly this key, or `undefined` for a text that is no key, a wrong checksum, an
   * unknown id and a wrong secret alike. Whether the key is in force is for the policy to say.
   * @throws what the source of facts threw.
   */
  authenticate(text: string, revision: Revision): MaybePromise<Principal | undefined>
  /** Whether this key has been good here before; asks no store. */
  isKnown(text: string): boolean
}

/** What an unknown id is compared with, so that it costs the same work as a known one. */
const nobody = '0'.repeat(64)

/** @param sha256 SHA-256 in hexadecimal. @param prefix The store's key prefix. */
export function createAuthenticator(
  principals: Principals,
  sha256: Sha256,
  prefix: string,
): Authenticator {
  return {
    authenticate(text, revision) {
      const parsed = parseKey(text, prefix)
      if (parsed === undefined) return undefined
      const digest = sha256(text)
      // A key that was good before needs no checksum; anything else must have one before a store is asked.
      const recalled = principals.recall(parsed.id)
      if (recalled === undefined && !hasValidChecksum(text)) return undefined
      return after(principals.find(parsed.id, revision), (principal) => {
        const matches = equalDigests(digest, principal?.key.digest ?? nobody)
        return matches ? principal : undefined
      })
    },
    isKnown(text) {
      const parsed = parseKey(text, prefix)
      const recalled = parsed === undefined ? undefined : principals.recall(parsed.id)
      return recalled !== undefined && equalDigests(sha256(text), recalled.key.digest)
    },
  }
}
