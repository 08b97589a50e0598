/** What becomes of attempts to keep a signup: the part of it that all stores share. */
import type { IdempotencyClaim, Signup, SignupOutcome } from '../../core/signups/signup.ts'
import { StoreError } from './store-error.ts'

/** What is kept under an idempotency key. */
export type ClaimRow = readonly [fingerprint: string, signupId: string, createdAt: number]

/** Expired claims that each signup clears away: more than the one that it may add. */
export const CLAIMS_PRUNED = 2

/** What an attempt meets whose key is in use. */
export function repeated([fingerprint, id, createdAt]: ClaimRow, claim: IdempotencyClaim): SignupOutcome {
  return fingerprint === claim.fingerprint ? { outcome: 'replayed', id, createdAt } : { outcome: 'mismatch' }
}

/** Why a signup is refused that no key of its partner can have sent. */
export function withoutKey({ id, partner, keyId }: Signup): StoreError {
  return refused(id, `${partner} has no key ${keyId}`)
}

/** Why a signup is refused whose id another one has. */
export function takenId({ id }: Signup): StoreError {
  return refused(id, 'there is a signup with this id already')
}

function refused(id: string, reason: string): StoreError {
  return new StoreError('refused', `The signup ${id} cannot be kept: ${reason}.`)
}
