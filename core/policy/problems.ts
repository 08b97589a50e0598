import { Problem, type ProblemCode } from '../http/problem.ts'
import type { Denial, Reason } from './decide.ts'

/** The problem that each reason becomes: a reason without one does not compile. */
export const problemFor: Readonly<Record<Reason, ProblemCode>> = {
  key_revoked: 'key_revoked',
  key_expired: 'key_expired',
  key_disabled: 'key_disabled',
  address_not_allowed: 'address_not_allowed',
  partner_missing: 'partner_missing',
  partner_mismatch: 'partner_mismatch',
  partner_suspended: 'partner_suspended',
  scope_missing: 'scope_missing',
  module_inactive: 'module_inactive',
}

/** What a client is told of a denial. */
export function problemOf({ reason, requiredScope, requiredModule }: Denial): Problem {
  if (requiredScope !== undefined) {
    return new Problem('scope_missing', {
      detail: `This key does not hold ${requiredScope}.`,
      required_scope: requiredScope,
    })
  }
  if (requiredModule !== undefined) {
    return new Problem('module_inactive', {
      detail: `The module ${requiredModule} is not active for this partner.`,
      required_module: requiredModule,
    })
  }
  return new Problem(problemFor[reason])
}
