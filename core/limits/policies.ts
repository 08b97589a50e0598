import type {
  KeyFacts,
  KeyPolicyName,
  Limit,
  PartnerPolicyName,
  PartnerQuotaName,
  PolicyName,
  ServicePolicyName,
} from '../model.ts'
import { policyItem } from './rate-limit-fields.ts'

/** The policies for which a key may have its own limit. */
export const KEY_POLICY_NAMES: readonly KeyPolicyName[] = ['key', 'signup', 'verify']

/** The policies that only a partner has. */
export const PARTNER_QUOTA_NAMES: readonly PartnerQuotaName[] = ['partner', 'month']

export function isPartnerQuota(name: string): name is PartnerQuotaName {
  return name === 'month' || name === 'partner'
}

/** The policies for which a partner may have its own limit. */
export const PARTNER_POLICY_NAMES: readonly PartnerPolicyName[] = [
  ...KEY_POLICY_NAMES,
  'rotate',
  ...PARTNER_QUOTA_NAMES,
]

/** Whether a policy counts the requests of all keys of a partner together, so that no key has a limit of its own. */
export function countsPerPartner(name: string): boolean {
  return name === 'rotate' || isPartnerQuota(name)
}

/** What a policy counts requests under: a key's id, or the slug of its partner. */
export function policySubject(name: PolicyName, keyId: string, slug: string): string {
  return countsPerPartner(name) ? slug : keyId
}

/** The most requests in a window. */
export const MAX_QUOTA = 1_000_000_000

/** The longest window, in seconds: a day. */
export const MAX_WINDOW_SECONDS = 86_400

/** The longest window of the policies `partner` and `month`, in seconds: 31 days. */
export const MAX_QUOTA_SECONDS = 2_678_400

/** The longest window of a policy, in seconds. */
export function maxWindowSeconds(name: string): number {
  return isPartnerQuota(name) ? MAX_QUOTA_SECONDS : MAX_WINDOW_SECONDS
}

/** The limit of each policy unless the service, the partner or the key has its own. */
export const DEFAULT_LIMITS: Readonly<Record<ServicePolicyName, Limit>> = {
  key: { quota: 600, windowSeconds: 60 },
  signup: { quota: 20, windowSeconds: 60 },
  verify: { quota: 30, windowSeconds: 60 },
  rotate: { quota: 20, windowSeconds: 3_600 },
  authfail: { quota: 20, windowSeconds: 60 },
}

export const SERVICE_POLICY_NAMES = Object.keys(DEFAULT_LIMITS) as readonly ServicePolicyName[]

/** The policies in the order in which responses list them. */
export const POLICY_NAMES: readonly PolicyName[] = [
  'key',
  ...PARTNER_QUOTA_NAMES,
  ...SERVICE_POLICY_NAMES.slice(1),
]

/** A policy with the limit in force. */
export interface Policy extends Limit {
  readonly name: PolicyName
  /** The item of the policy in `RateLimit-Policy`. */
  readonly field: string
  /** Whole seconds from the request to the end of the month, for the policy `month`. */
  readonly resetSeconds?: number
}

export function createPolicy(name: PolicyName, { quota, windowSeconds }: Limit): Policy {
  return { name, quota, windowSeconds, field: policyItem(name, { quota, windowSeconds }) }
}

/** The policies that are on. */
export type Policies = Readonly<Partial<Record<PolicyName, Policy>>>

function ownLimit(
  name: ServicePolicyName,
  facts: KeyFacts | undefined,
): Limit | undefined {
  if (facts === undefined || name === 'authfail') return undefined
  if (name === 'rotate') return facts.partner.limits.rotate
  return facts.key.limits[name] ?? facts.partner.limits[name]
}

/** The policies for a key: its own limits first, then its partner's, then the service's. Test keys have no quota. */
export function policiesFor(
  service: Readonly<Record<ServicePolicyName, Limit>>,
  facts?: KeyFacts,
): Policies {
  const policies: Partial<Record<PolicyName, Policy>> = {}
  for (const name of SERVICE_POLICY_NAMES) {
    const limit = ownLimit(name, facts) ?? service[name]
    if (limit.quota > 0) policies[name] = createPolicy(name, limit)
  }
  for (const name of facts?.key.environment === 'live' ? PARTNER_QUOTA_NAMES : []) {
    const limit = facts!.partner.limits[name]
    if (limit === undefined || limit.quota === 0) continue
    // Each month's own length counts, see `countedAs`.
    const { quota, windowSeconds = MAX_QUOTA_SECONDS } = limit
    policies[name] = createPolicy(name, { quota, windowSeconds })
  }
  return policies
}
