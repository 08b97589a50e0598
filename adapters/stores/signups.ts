import type { Environment } from '../../core/model.ts'
import type { IdempotencyClaim, Signup, SignupInput, SignupOutcome } from '../../core/ports/signups.ts'
import { StoreError } from './store-error.ts'

/** The columns of a signup, in the order of `SignupRow`. */
export const SIGNUP_COLUMNS = ['id', 'partner', 'key_id', 'environment', 'created_at', 'record'] as const

export type SignupRow = [
  id: string,
  partner: string,
  keyId: string,
  environment: string,
  createdAt: number,
  record: string,
]

export function signupRow(signup: Signup): SignupRow {
  const { id, partner, keyId, environment, createdAt } = signup
  return [id, partner, keyId, environment, createdAt, JSON.stringify(pickInput(signup))]
}

export function readSignup([id, partner, keyId, environment, createdAt, record]: SignupRow): Signup {
  return {
    ...pickInput(JSON.parse(record)),
    id,
    partner,
    keyId,
    environment: environment as Environment,
    createdAt,
  }
}

/** What the form sent and nothing else, absent values present as `undefined`. */
function pickInput(input: SignupInput): SignupInput {
  return {
    email: input.email,
    name: input.name,
    company: input.company,
    country: input.country,
    plan: input.plan,
    profile: input.profile,
    locale: input.locale,
    message: input.message,
    consentAt: input.consentAt,
    metadata: input.metadata,
  }
}

/** What becomes of attempts to keep a signup: the part of it that all stores share. */

/** What is kept under an idempotency key. */
export type ClaimRow = readonly [fingerprint: string, signupId: string, createdAt: number]

/** Expired claims that each signup clears away: more than the one that it may add. */
export const CLAIMS_PRUNED_PER_SIGNUP = 2

/** What an attempt meets whose key is in use. */
export function repeatedOutcome(
  [fingerprint, id, createdAt]: ClaimRow,
  claim: IdempotencyClaim,
): SignupOutcome {
  return fingerprint === claim.fingerprint ? { outcome: 'replayed', id, createdAt } : { outcome: 'mismatch' }
}

/** Why a signup is refused that no key of its partner can have sent. */
export function unknownKeyError({ id, partner, keyId }: Signup): StoreError {
  return signupRefused(id, `${partner} has no key ${keyId}`)
}

/** Why a signup is refused whose id another one has. */
export function duplicateIdError({ id }: Signup): StoreError {
  return signupRefused(id, 'there is a signup with this id already')
}

function signupRefused(id: string, reason: string): StoreError {
  return new StoreError('refused', `The signup ${id} cannot be kept: ${reason}.`)
}
