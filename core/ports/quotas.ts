import type { MaybePromise } from '../lib/promise.ts'
import type { LimitName } from '../model.ts'

/** A request of a replica for a part of a quota. */
export interface LeaseRequest {
  /** The policy. */
  readonly policy: LimitName
  /** A key's id or an address. */
  readonly subject: string
  /** Requests in a window, 1 or more. */
  readonly quota: number
  /** 1 or more. */
  readonly windowSeconds: number
  /** Requests to take; 0 only reads the state, and opens no window. */
  readonly wanted: number
}

/** The part of a quota that a replica got. */
export interface QuotaLease {
  /** Requests taken: `wanted`, or all that were left. */
  readonly granted: number
  /** Requests left in the quota, 0 or more. */
  readonly remaining: number
  /** Milliseconds until the window ends; its whole length when none is open. */
  readonly resetMs: number
}

/** The quotas that replicas share. A window opens with its first lease, and never leases more than the quota. */
export interface QuotaStore {
  /**
   * Takes what is wanted, or all that is left.
   * @throws when the store does not respond: whether anything was taken is then unknown.
   */
  leaseQuota(request: LeaseRequest): MaybePromise<QuotaLease>
}
