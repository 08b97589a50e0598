import type { IdempotencyClaim, Signup } from '../../../core/signups/signup.ts'
import type { SignupStore } from '../../../core/ports.ts'
import { compareCodePoints } from '../../../core/content/fold.ts'
import { CLAIMS_PRUNED, repeated, takenId, withoutKey } from '../signup-outcomes.ts'
import type { Synchronous } from '../answers.ts'
import type { Facts } from './facts.ts'
import { createOrderedIndex } from './ordered-index.ts'

interface Kept extends IdempotencyClaim {
  readonly id: string
  readonly createdAt: number
}

/** The signups of a memory store. */
export interface Signups extends Synchronous<SignupStore> {
  readonly all: ReadonlyMap<string, Signup>
}

export function createSignups(facts: Pick<Facts, 'keys'>): Signups {
  const all = new Map<string, Signup>()
  const newest = createOrderedIndex<Pick<Signup, 'createdAt' | 'id'>, Signup>(
    (a, b) => b.createdAt - a.createdAt || compareCodePoints(a.id, b.id),
  )
  /** In the order in which they were made, which is nearly that in which they expire. */
  const claims = new Map<string, Kept>()

  function prune(now: number): void {
    let looked = 0
    for (const [key, { expiresAt }] of claims) {
      if (looked++ === CLAIMS_PRUNED) return
      if (expiresAt <= now) claims.delete(key)
    }
  }

  return {
    all,

    createSignup(signup, claim) {
      const { id, partner, environment, keyId, createdAt } = signup
      const claimed = claim && [partner, environment, claim.key].join('\n')
      if (claim !== undefined) {
        const kept = claims.get(claimed!)
        if (kept !== undefined && kept.expiresAt > createdAt) {
          return repeated([kept.fingerprint, kept.id, kept.createdAt], claim)
        }
      }
      if (facts.keys.get(keyId)?.partner !== partner) throw withoutKey(signup)
      if (all.has(id)) throw takenId(signup)
      prune(createdAt)
      if (claim !== undefined) {
        claims.delete(claimed!)
        claims.set(claimed!, { ...claim, id, createdAt })
      }
      const kept = { ...signup, metadata: { ...signup.metadata } }
      all.set(id, kept)
      newest.add(kept, partner)
      return { outcome: 'created' }
    },

    listSignups: newest.page,
  }
}
