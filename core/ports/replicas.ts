/** What replicas of the service that share a store know of each other. */
import type { MaybePromise } from '../lib/promise.ts'
import type { Revision } from './facts.ts'

/** A running process of the service, as it presents itself to its store. */
export interface Replica {
  /** What receipts call it: 1–200 characters. */
  readonly name: string
  /** Milliseconds for which it may go on using what it confirmed last. */
  readonly leaseMs: number
  /** Milliseconds, 1 or more, after which it is to confirm again when it has heard of no change. */
  readonly revalidateEveryMs: number
  /** Milliseconds by which its clock is ahead of the store's; 0 while that is within its bounds. */
  skewMs?(): number
  /**
   * Asks for the revision, and drops what it knows under another one.
   * @returns The revision under which every request that begins from now on is judged.
   */
  revalidate(): Promise<Revision>
}

/** A replica's place among the replicas of its store. */
export interface ReplicaRegistration {
  /**
   * Returns once the store knows of the replica, at once when it does already. Nothing that the store tells may be
   * used before: a receipt would not wait for a replica that nobody knows of.
   * @throws when the store does not answer.
   */
  registered(): MaybePromise<void>
  /** How many replicas are live, this one included, as far as it has heard: 1 or more. */
  replicaCount(): number
  /** Has the store forget the replica, and confirms no more. Never rejects. */
  deregister(): Promise<void>
}

/** How far a replica is. */
export interface ReplicaProgress {
  /** Tells it from all others. */
  readonly id: string
  /** What it calls itself. */
  readonly name: string
  /** Whether it has confirmed the revision that was asked about, or a later one. */
  readonly applied: boolean
  /** Milliseconds for which it may use what it confirmed before. */
  readonly leaseMs: number
  /** What it said last of its clock, see `Replica`. */
  readonly skewMs: number
}

/** Where replicas are registered. */
export interface ReplicaRegistry {
  /** Takes a replica in when it first asks whether it has joined. */
  register(replica: Replica): ReplicaRegistration
  /** Every replica that may be running. `revision` is one that the store was at. */
  progress(revision: Revision): MaybePromise<readonly ReplicaProgress[]>
}
