import type { MaybePromise } from '../lib/promise.ts'
import type { Revision } from './facts.ts'

/** A running process of the service, as registered in its store. */
export interface Replica {
  /** The name of the replica in receipts: 1–200 characters. */
  readonly name: string
  /** Milliseconds for which it may use the last confirmed revision. */
  readonly leaseMs: number
  /** Milliseconds, 1 or more, between revalidations without a change. */
  readonly revalidateEveryMs: number
  /** Milliseconds by which its clock is ahead of the store's; 0 within the bounds. */
  skewMs(): number
  /**
   * Reads the revision, and drops data of an older one.
   * @returns The revision for every request that starts from now on.
   */
  revalidate(): Promise<Revision>
}

/** The registration of a replica in its store. */
export interface ReplicaRegistration {
  /**
   * Returns once the replica is registered. Data of the store must not be used before: a receipt does not wait for an
   * unregistered replica.
   * @throws when the store does not respond.
   */
  registered(): MaybePromise<void>
  /** The last known number of live replicas, this one included: 1 or more. */
  replicaCount(): number
  /** Removes the replica from the store and stops its revalidation. Never rejects. */
  deregister(): Promise<void>
}

/** The progress of a replica towards a revision. */
export interface ReplicaProgress extends Pick<Replica, 'name' | 'leaseMs'> {
  /** The id of the registration. */
  readonly id: string
  /** Whether it has confirmed that revision or a later one. */
  readonly applied: boolean
  /** Milliseconds by which its clock is ahead of the store's; 0 within the bounds. */
  readonly skewMs: number
}

/** The registry of replicas. */
export interface ReplicaRegistry {
  /** Starts the registration of a replica with its first call of `registered`. */
  register(replica: Replica): ReplicaRegistration
  /** Every replica that may be running. `revision` is a current or former revision of the store. */
  progress(revision: Revision): MaybePromise<readonly ReplicaProgress[]>
}
