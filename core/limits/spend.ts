import type { LimitName } from '../model.ts'
import type { MaybePromise } from '../ports.ts'
import type { Allowance, Limiter } from './limiter.ts'
import type { Policies } from './policies.ts'

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
 * @throws when a quota is shared and nobody can be asked about it.
 */
export function spendQuotas(
  limiter: Limiter,
  policies: Policies,
  names: readonly LimitName[],
  subject: string,
  now: number,
): MaybePromise<Spending> {
  let policyField = ''
  let met: Met[] | undefined
  let waits = false
  for (const name of names) {
    const policy = policies[name]
    if (policy === undefined) continue
    policyField += policyField === '' ? policy.field : `, ${policy.field}`
    const one = { name, allowance: limiter.spend(policy, subject, now) }
    waits ||= one.allowance instanceof Promise
    if (met === undefined) met = [one]
    else met.push(one)
  }
  if (met === undefined) return nothingMet
  if (!waits) return tell(policyField, met as Settled[])
  return Promise.all(met.map(async ({ name, allowance }) => ({ name, allowance: await allowance })))
    .then((settled) => tell(policyField, settled))
}

interface Met {
  readonly name: LimitName
  readonly allowance: MaybePromise<Allowance>
}

interface Settled extends Met {
  readonly allowance: Allowance
}

const nothingMet: Spending = { fields: [], retryAfterSeconds: undefined }

function tell(policyField: string, met: readonly Settled[]): Spending {
  let limitField = ''
  let retryAfterSeconds: number | undefined
  for (const { name, allowance: { allowed, remaining, resetSeconds } } of met) {
    limitField += `${limitField === '' ? '' : ', '}"${name}";r=${remaining};t=${resetSeconds}`
    if (!allowed) retryAfterSeconds = Math.max(retryAfterSeconds ?? 0, resetSeconds)
  }
  return { fields: ['RateLimit-Policy', policyField, 'RateLimit', limitField], retryAfterSeconds }
}
