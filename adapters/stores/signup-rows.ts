import type { Environment } from '../../core/model.ts'
import type { Signup, SignupInput } from '../../core/signups/signup.ts'

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
  return [id, partner, keyId, environment, createdAt, JSON.stringify(inputOf(signup))]
}

export function readSignup([id, partner, keyId, environment, createdAt, record]: SignupRow): Signup {
  return {
    ...inputOf(JSON.parse(record)),
    id,
    partner,
    keyId,
    environment: environment as Environment,
    createdAt,
  }
}

/** What the form sent and nothing else, absent values present as `undefined`. */
function inputOf(input: SignupInput): SignupInput {
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
