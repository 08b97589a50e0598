/** What the successor of keys may do: no more than each of them. */
import { intersectRanges } from '../lib/ip-address.ts'
import { KEY_POLICY_NAMES } from '../limits/policies.ts'
import type { Key, KeyPolicyName, Limit, LimitOverrides, Partner, ServicePolicyName } from '../model.ts'
import { AdminError } from './error.ts'

/** The limits of the service, which apply to keys of partners without their own. */
export type ServiceLimits = Readonly<Record<ServicePolicyName, Limit>>

/**
 * The scopes, addresses, limits and end that all of the keys allow.
 *
 * @param replaced One key, or the rotated key and its former successor.
 * @throws {AdminError} `addresses_disjoint`, `limits_differ`
 */
export function commonRights(
  replaced: readonly [Key, ...Key[]],
  partner: Partner,
  service: ServiceLimits,
): Pick<Key, 'scopes' | 'allow' | 'limits' | 'expiresAt'> {
  const [first, ...others] = replaced
  const expiresAt = Math.min(...replaced.map((key) => key.expiresAt ?? Infinity))
  return {
    scopes: first.scopes.filter((scope) => others.every(({ scopes }) => scopes.includes(scope))),
    allow: others.reduce((allow, key) => commonRanges(allow, key.allow), first.allow),
    limits: commonLimits(replaced, partner, service),
    expiresAt: expiresAt === Infinity ? undefined : expiresAt,
  }
}

function commonRanges(one: readonly string[], other: readonly string[]): readonly string[] {
  const common = intersectRanges(one, other)
  if (common !== undefined) return common
  throw new AdminError('addresses_disjoint', 'The keys to be replaced have no address in common.')
}

function commonLimits(keys: readonly Key[], partner: Partner, service: ServiceLimits): LimitOverrides {
  const limits: Partial<Record<KeyPolicyName, Limit>> = {}
  for (const name of KEY_POLICY_NAMES) {
    if (keys.every((key) => key.limits[name] === undefined)) continue
    const inherited = partner.limits[name] ?? service[name]
    const least = leastLimit(name, keys.map((key) => key.limits[name] ?? inherited))
    // A key without its own limit follows that of its partner and of the service.
    const isInherited = keys.some((key) => key.limits[name] === undefined) &&
      quotaOf(inherited) === quotaOf(least)
    if (!isInherited) limits[name] = least
  }
  return limits
}

/** @throws {AdminError} `limits_differ` */
function leastLimit(name: KeyPolicyName, limits: readonly Limit[]): Limit {
  const least = limits.reduce((least, limit) => quotaOf(limit) < quotaOf(least) ? limit : least)
  const isComparable = limits.every((limit) =>
    limit.quota === 0 || limit.windowSeconds === least.windowSeconds
  )
  if (isComparable) return least
  const detail = `The keys to be replaced have limits of the policy ${name} with different windows.`
  throw new AdminError('limits_differ', detail)
}

/** A quota of 0 turns the policy off. */
function quotaOf({ quota }: Limit): number {
  return quota === 0 ? Infinity : quota
}
