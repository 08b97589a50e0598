/** The items of `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11). */
import type { Limit } from '../model.ts'

/** The item of a policy in `RateLimit-Policy` (§3). */
export function policyItem(policy: string, { quota, windowSeconds }: Limit): string {
  return `"${policy}";q=${quota};w=${windowSeconds}`
}

/** What is left of a quota. */
interface QuotaLeft {
  /** Requests left in the window. */
  readonly remaining: number
  /** Whole seconds until the window ends. */
  readonly resetSeconds: number
}

/** The item of a policy in `RateLimit` (§4). */
export function limitItem(policy: string, { remaining, resetSeconds }: QuotaLeft): string {
  return `"${policy}";r=${remaining};t=${resetSeconds}`
}
