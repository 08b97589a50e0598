import type { LimitName } from '../model.ts'
import type { Policies } from './policies.ts'
import type { Limiter } from './window.ts'

/** What the policies of a route say to a request. */
export interface Spending {
  /**
   * `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11 §3 and §4) with every policy that
   * was met, names and values in turn; empty when none is on.
   */
  readonly fields: readonly string[]
  /** Whole seconds to wait when a quota is spent; `undefined` when all hold. */
  readonly retryAfterSeconds: number | undefined
}

/**
 * Counts a request against every policy that applies to it.
 *
 * @param now Milliseconds on a clock that is never set back.
 */
export function spendQuotas(
  limiter: Limiter,
  policies: Policies,
  names: readonly LimitName[],
  subject: string,
  now: number,
): Spending {
  let policyField = ''
  let limitField = ''
  let retryAfterSeconds: number | undefined
  for (const name of names) {
    const policy = policies[name]
    if (policy === undefined) continue
    const { allowed, remaining, resetSeconds } = limiter.spend(policy, subject, now)
    const separator = policyField === '' ? '' : ', '
    policyField += separator + policy.field
    limitField += `${separator}"${name}";r=${remaining};t=${resetSeconds}`
    if (!allowed) retryAfterSeconds = Math.max(retryAfterSeconds ?? 0, resetSeconds)
  }
  const fields = policyField === '' ? [] : ['RateLimit-Policy', policyField, 'RateLimit', limitField]
  return { fields, retryAfterSeconds }
}
