import type { Policy } from './policies.ts'
import type { Allowance } from './window.ts'

/**
 * The fields that tell a client its limits (draft-ietf-httpapi-ratelimit-headers-11 §3 and §4).
 *
 * @param met The policies that the request met, with what they left; not empty.
 * @returns Names and values in turn.
 */
export function rateLimitFields(met: readonly { policy: Policy; allowance: Allowance }[]): string[] {
  let policies = ''
  let allowances = ''
  for (const { policy, allowance } of met) {
    const separator = policies === '' ? '' : ', '
    policies += separator + policy.field
    allowances += `${separator}"${policy.name}";r=${allowance.remaining};t=${allowance.resetSeconds}`
  }
  return met.length === 0 ? [] : ['RateLimit-Policy', policies, 'RateLimit', allowances]
}
