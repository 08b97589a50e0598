import type { KeyFacts, Limit, LimitName, OverridableLimit } from '../model.ts'

/** The policies for which a partner or a key may have its own limit. */
export const OVERRIDABLE_LIMITS: readonly OverridableLimit[] = ['key', 'signup', 'verify', 'rotate']

/** The most requests in a window. */
export const MAX_QUOTA = 1_000_000_000

/** The longest window, in seconds: a day. */
export const MAX_WINDOW_SECONDS = 86_400

/** The limit of each policy unless the service, the partner or the key has its own. */
export const DEFAULT_LIMITS: Readonly<Record<LimitName, Limit>> = {
  key: { quota: 600, windowSeconds: 60 },
  signup: { quota: 20, windowSeconds: 60 },
  verify: { quota: 30, windowSeconds: 60 },
  rotate: { quota: 5, windowSeconds: 3_600 },
  authfail: { quota: 20, windowSeconds: 60 },
}

/** The policies in the order in which responses list them. */
export const LIMIT_NAMES = Object.keys(DEFAULT_LIMITS) as readonly LimitName[]

/** A policy with the limit in force. */
export interface Policy extends Limit {
  readonly name: LimitName
  /** Its item in `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-11 §3). */
  readonly field: string
}

/** The policies that are on. */
export type Policies = Readonly<Partial<Record<LimitName, Policy>>>

/** The policies for a key: its own limits first, then its partner's, then the service's. */
export function policiesFor(
  service: Readonly<Record<LimitName, Limit>>,
  facts?: Pick<KeyFacts, 'key' | 'partner'>,
): Policies {
  const policies: Partial<Record<LimitName, Policy>> = {}
  for (const name of LIMIT_NAMES) {
    const own = name === 'authfail' ? undefined : facts?.key.limits[name] ?? facts?.partner.limits[name]
    const { quota, windowSeconds } = own ?? service[name]
    if (quota > 0) {
      policies[name] = { name, quota, windowSeconds, field: `"${name}";q=${quota};w=${windowSeconds}` }
    }
  }
  return policies
}
