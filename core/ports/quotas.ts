import type { MaybePromise } from '../lib/promise.ts'
import type { PolicyName } from '../model.ts'

/** A request of a replica for a part of a quota. */
export interface LeaseRequest {
  /** The name of the policy. */
  readonly policy: PolicyName
  /**
   * A key's id, an address or a partner's slug, each with a space and the seconds of the service's windows; for
   * `month` a slug, a space and `YYYY-MM`, for `partner` a slug; or the id of an event of a quota.
   */
  readonly subject: string
  /** Requests in a window, 1 or more. */
  readonly quota: number
  /** Length of a window in seconds, 1 or more. */
  readonly windowSeconds: number
  /** Requests to take; 0 only reads the state, and opens no window. */
  readonly wanted: number
  /** The requests among those wanted that wait for the lease and use it at once. Default 0. */
  readonly waiting?: number
  /**
   * The most that all replicas together hold without having reported its use. If it is above 0, a store may grant
   * more than is wanted as long as few replicas use the quota, and less than that, but not than waits. Default 0.
   */
  readonly mostHeld?: number
  /** The use of the replica's earlier leases. */
  readonly report?: LeaseReport | undefined
}

/** The use that a replica has made of its leases of one term since its last report. */
export interface LeaseReport {
  /** The term of the leases. */
  readonly term: number
  /** Requests that used them. */
  readonly used: number
}

/** Requests that a replica leased and returns. */
export interface QuotaReturn extends Pick<LeaseRequest, 'policy' | 'subject'>, LeaseReport {
  /** Requests that used none of the lease, 0 or more. */
  readonly unused: number
}

/** The part of a quota that a replica got. */
export interface QuotaLease {
  /** Requests taken: `wanted`, or what `mostHeld` allows, or all that were left. */
  readonly granted: number
  /** Requests left in the quota, 0 or more. */
  readonly remaining: number
  /** Milliseconds until the window ends; its whole length when none is open. */
  readonly resetMs: number
  /** Identifies the window and the quota under which it was leased. */
  readonly term: number
}

/**
 * The quotas that replicas share. A window opens with its first lease, and never leases more than the quota. A
 * request with another quota or length begins a new term: what was leased before and not reported as used is
 * available again, and counts when its use is reported. For `partner` and `month` it does not: what was leased
 * stays counted. Their leases of an hour or more survive a crash of the store.
 */
export interface QuotaStore {
  /** Whether limits of keys and addresses are shared; otherwise only the quotas of partners are. */
  readonly sharesLimits: boolean
  /** Seconds, 1 to share all windows. Shorter ones are not shared: each process counts by itself. */
  readonly leastWindowSeconds: number
  /**
   * Takes what is wanted or allowed, or all that is left.
   * @throws when the store does not respond: whether anything was taken is then unknown.
   */
  leaseQuota(request: LeaseRequest): MaybePromise<QuotaLease>
  /** Makes what replicas leased available again, unless its window has ended. @throws like `leaseQuota`. */
  returnQuotas(returns: readonly QuotaReturn[]): MaybePromise<void>
}
