import { compareCodePoints } from '../../../core/lib/text.ts'
import type { Key } from '../../../core/model.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import type { IdempotencyClaim, Signup, SignupOutcome, SignupStore } from '../../../core/ports/signups.ts'
import { CLAIMS_PRUNED_PER_SIGNUP, duplicateIdError, repeatedOutcome, unknownKeyError } from '../signups.ts'
import { pageOf } from './partners-and-keys.ts'

type Position = Pick<Signup, 'createdAt' | 'id'>

const newestFirst = (a: Position, b: Position) => b.createdAt - a.createdAt || compareCodePoints(a.id, b.id)

export function createSignups(
  keys: ReadonlyMap<string, Key>,
  created: (signup: Signup) => void,
  deleted: (signups: readonly Signup[], claims: number, context: AuditContext) => void,
) {
  const all = new Map<string, Signup>()
  /** What reports count of signups that were removed. */
  const removed: Pick<Signup, 'partner' | 'environment' | 'createdAt' | 'country' | 'plan'>[] = []
  /** In the order of creation, which is nearly the order of expiry. */
  const claims = new Map<string, IdempotencyClaim & Position>()

  function findClaim({ partner, environment, createdAt }: Signup, key: string | undefined) {
    const claimKey = [partner, environment, key].join('\n')
    const stored = claims.get(claimKey)
    return { claimKey, held: stored !== undefined && stored.expiresAt > createdAt ? stored : undefined }
  }

  /** @param isStored Whether to store the signup, or its claim alone. */
  function insert(signup: Signup, claim: IdempotencyClaim | undefined, isStored: boolean): SignupOutcome {
    const { id, partner, keyId, createdAt } = signup
    const { claimKey, held } = findClaim(signup, claim?.key)
    if (claim !== undefined && held !== undefined) {
      return repeatedOutcome([held.fingerprint, held.id, held.createdAt], claim)
    }
    if (keys.get(keyId)?.partner !== partner) throw unknownKeyError(signup)
    if (all.has(id)) throw duplicateIdError(signup)
    for (const [key, { expiresAt }] of claims.entries().take(CLAIMS_PRUNED_PER_SIGNUP)) {
      if (expiresAt <= createdAt) claims.delete(key)
    }
    if (claim !== undefined) {
      claims.delete(claimKey)
      claims.set(claimKey, { ...claim, id, createdAt })
    }
    if (isStored) {
      const copy = { ...signup, metadata: { ...signup.metadata } }
      all.set(id, copy)
      created(copy)
    }
    return { outcome: 'created' }
  }

  const signupStore = {
    createSignup: (signup, claim) => insert(signup, claim, true),

    claimSignup: (signup, claim) => insert(signup, claim, false),

    isClaimed: (signup, { key }) => findClaim(signup, key).held !== undefined,

    findSignup: (id) => all.get(id),

    listSignups(partner, after, limit) {
      const listed = [...all.values()].filter((signup) => partner === undefined || signup.partner === partner)
      return pageOf(listed, newestFirst, after, limit)
    },

    deleteSignups(ids, context) {
      const found = [...new Set(ids)].flatMap((id) => all.get(id) ?? [])
      const used = [...claims].filter(([, claim]) => all.has(claim.id) && ids.includes(claim.id))
      for (const [key] of used) claims.delete(key)
      for (const { id, partner, environment, createdAt, country, plan } of found) {
        all.delete(id)
        removed.push({ partner, environment, createdAt, country, plan })
      }
      if (found.length > 0) deleted(found, used.length, context)
      return found.length
    },
  } satisfies SignupStore

  return { signupStore, all: all as ReadonlyMap<string, Signup>, removed }
}
