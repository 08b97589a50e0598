import { optionalRfc3339 } from '../lib/time.ts'
import type { Partner, PartnerQuotaName } from '../model.ts'
import type { QuotaStore } from '../ports/quotas.ts'
import {
  createPolicy,
  isPartnerQuota,
  MAX_QUOTA,
  MAX_QUOTA_SECONDS,
  PARTNER_QUOTA_NAMES,
  type Policy,
  policySubject,
} from './policies.ts'

/** Ten years: a store that a clock misleads for a moment neither deletes the count of a month nor begins it again. */
const storedMonthSeconds = 315_360_000

/** The policy and length of a window. */
type PolicyWindow = Pick<Policy, 'name' | 'windowSeconds'>

/** The length of a window in the store. That of a month never ends before the month. */
export function storedSeconds({ name, windowSeconds }: PolicyWindow): number {
  return name === 'month' ? storedMonthSeconds : windowSeconds
}

/** Whether neither a crash nor the absence of the store may let more requests pass: for windows of an hour or more. */
export function isDurable({ name, windowSeconds }: PolicyWindow): boolean {
  return isPartnerQuota(name) && windowSeconds >= 3_600
}

/** The month of the last instant: most requests are in the same one. */
let month = { name: '', start: 0, end: 0 }

/** The calendar month of an instant, in UTC. */
function utcMonth(at: number): typeof month {
  if (at >= month.start && at < month.end) return month
  const date = new Date(at)
  const year = date.getUTCFullYear()
  const index = date.getUTCMonth()
  const start = Date.UTC(year, index)
  const end = Date.UTC(year, index + 1)
  month = { name: date.toISOString().slice(0, 7), start, end }
  return month
}

/** A policy with what it counts a request under. */
export interface Counted {
  readonly policy: Policy
  readonly subject: string
}

/** What a policy counts requests of a key under at an instant. Each month is a subject, and so a window, of its own. */
export function countedAs(
  policy: Policy,
  keyId: string,
  { slug }: Pick<Partner, 'slug'>,
  at: number,
): Counted {
  if (policy.name !== 'month') return { policy, subject: policySubject(policy.name, keyId, slug) }
  const { name, start, end } = utcMonth(at)
  const { quota } = policy
  const inMonth = createPolicy('month', { quota, windowSeconds: (end - start) / 1000 })
  return {
    policy: { ...inMonth, resetSeconds: Math.ceil((end - at) / 1000) },
    subject: `${slug} ${name}`,
  }
}

/** What the servers have counted of a quota. */
export interface QuotaUse {
  readonly policy: PartnerQuotaName
  readonly quota: number
  readonly window_seconds: number | null
  /** Requests, with those that servers have leased: up to 2 % of the quota. `null`: each server counts by itself. */
  readonly used: number | null
  readonly remaining: number | null
  /** `null` when no window is open. */
  readonly resets_at: string | null
}

/** Reads the quotas of a partner, and changes nothing. @throws like `QuotaStore.leaseQuota`. */
export async function readQuotaUse(
  { quotas }: { readonly quotas: QuotaStore },
  { slug, limits }: Pick<Partner, 'slug' | 'limits'>,
  at: number,
): Promise<QuotaUse[]> {
  const found: QuotaUse[] = []
  for (const name of PARTNER_QUOTA_NAMES) {
    const { quota = 0, windowSeconds = MAX_QUOTA_SECONDS } = limits[name] ?? {}
    if (quota === 0) continue
    const { policy, subject } = countedAs(createPolicy(name, { quota, windowSeconds }), '', { slug }, at)
    const counted = { policy: name, subject, windowSeconds: storedSeconds(policy) }
    const request = { ...counted, quota: MAX_QUOTA, wanted: 0 }
    const isShared = policy.windowSeconds >= quotas.leastWindowSeconds
    const lease = isShared ? await quotas.leaseQuota(request) : undefined
    const used = lease === undefined ? null : MAX_QUOTA - lease.remaining
    const openUntil = used ? at + lease!.resetMs : undefined
    const end = name === 'month' ? utcMonth(at).end : openUntil
    found.push({
      policy: name,
      quota,
      window_seconds: name === 'month' ? null : windowSeconds,
      used,
      remaining: used === null ? null : Math.max(0, quota - used),
      resets_at: optionalRfc3339(end),
    })
  }
  return found
}
