import type { MaybePromise } from '../lib/promise.ts'
import type { LimitName } from '../model.ts'

/** What a replica asks of a quota. */
export interface LeaseRequest {
  /** Which of the service's policies it is. */
  readonly policy: LimitName
  /** A key's id or an address. */
  readonly subject: string
  /** Requests in a window, 1 or more. */
  readonly quota: number
  /** 1 or more. */
  readonly windowSeconds: number
  /** Requests to take, 0 or more; 0 only looks, and opens no window. */
  readonly wanted: number
}

/** What a replica got of a quota. */
export interface QuotaLease {
  /** Requests that were taken: `wanted`, or all that were left. */
  readonly granted: number
  /** Requests that are left for others and later, 0 or more. */
  readonly remaining: number
  /** Milliseconds until the window is over; its whole length when none is open. */
  readonly resetMs: number
}

/**
 * Keeps the quotas that replicas share. A window is opened by the first that takes something while none is open, and
 * no more than the quota is ever taken out of one.
 */
export interface QuotaStore {
  /**
   * Takes what is wanted, as far as it is there.
   * @throws when the store does not answer: then nothing is known to have been taken.
   */
  leaseQuota(request: LeaseRequest): MaybePromise<QuotaLease>
}
