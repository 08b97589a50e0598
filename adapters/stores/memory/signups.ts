import type { Synchronous } from '../../../core/lib/promise.ts'
import { compareCodePoints } from '../../../core/lib/text.ts'
import type { IdempotencyClaim, Signup, SignupStore } from '../../../core/ports/signups.ts'
import { CLAIMS_PRUNED_PER_SIGNUP, duplicateIdError, repeatedOutcome, unknownKeyError } from '../signups.ts'
import { createOrderedIndex } from './ordered-index.ts'
import type { PartnersAndKeys } from './partners-and-keys.ts'

interface StoredClaim extends IdempotencyClaim {
  readonly id: string
  readonly createdAt: number
}

/** The signups of a memory store. */
export interface Signups extends Synchronous<SignupStore> {
  readonly all: ReadonlyMap<string, Signup>
}

export function createSignups(facts: Pick<PartnersAndKeys, 'keys'>): Signups {
  const all = new Map<string, Signup>()
  const byNewest = createOrderedIndex<Pick<Signup, 'createdAt' | 'id'>, Signup>(
    (a, b) => b.createdAt - a.createdAt || compareCodePoints(a.id, b.id),
  )
  /** In the order in which they were made, which is nearly that in which they expire. */
  const claims = new Map<string, StoredClaim>()

  function pruneClaims(now: number): void {
    let checked = 0
    for (const [key, { expiresAt }] of claims) {
      if (checked++ === CLAIMS_PRUNED_PER_SIGNUP) return
      if (expiresAt <= now) claims.delete(key)
    }
  }

  return {
    all,

    createSignup(signup, claim) {
      const { id, partner, environment, keyId, createdAt } = signup
      const claimKey = claim && [partner, environment, claim.key].join('\n')
      if (claim !== undefined) {
        const kept = claims.get(claimKey!)
        if (kept !== undefined && kept.expiresAt > createdAt) {
          return repeatedOutcome([kept.fingerprint, kept.id, kept.createdAt], claim)
        }
      }
      if (facts.keys.get(keyId)?.partner !== partner) throw unknownKeyError(signup)
      if (all.has(id)) throw duplicateIdError(signup)
      pruneClaims(createdAt)
      if (claim !== undefined) {
        claims.delete(claimKey!)
        claims.set(claimKey!, { ...claim, id, createdAt })
      }
      const kept = { ...signup, metadata: { ...signup.metadata } }
      all.set(id, kept)
      byNewest.add(kept, partner)
      return { outcome: 'created' }
    },

    listSignups: byNewest.page,
  }
}
