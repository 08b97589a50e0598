import { after } from '../after.ts'
import type { FreshnessBounds } from '../cache/freshness.ts'
import type { Guard } from '../guard.ts'
import type { MaybePromise, Revision } from '../ports.ts'
import type { Membership, ReplicaRegistry } from './registry.ts'

/** A process that shares its store with nobody, or whose store does not know. */
const alone: Membership = { joined: () => undefined, size: () => 1, leave: () => Promise.resolve() }

/** Confirmed this often, what is known is not so old yet that a request asks by itself. */
const confirmsInABound = 2.5
/** Milliseconds between confirmations, whatever the bound: replicas are to be heard of, and not all the time. */
const confirmEvery = { least: 50, most: 1_000, unbound: 500 }

/**
 * This process among the replicas of its store.
 *
 * @param confirm Asks for the revision of the store, see `Replica`.
 * @param skewMs See `Replica`.
 */
export function becomeReplica(
  registry: ReplicaRegistry | undefined,
  guard: Guard,
  name: string,
  { maxStalenessMs, staleIfErrorMs = 0 }: FreshnessBounds,
  confirm: () => MaybePromise<Revision>,
  skewMs: () => number,
): Membership {
  if (registry === undefined) return alone
  const { least, most, unbound } = confirmEvery
  return guard.membership(registry.join({
    name,
    leaseMs: maxStalenessMs + staleIfErrorMs,
    confirmEveryMs: maxStalenessMs === 0
      ? unbound
      : Math.min(Math.max(maxStalenessMs / confirmsInABound, least), most),
    confirm: async () => await confirm(),
    skewMs,
  }))
}

/** Reads the revision as a replica that the store knows of. */
export function revisionAs(
  replica: Membership,
  revision: () => MaybePromise<Revision>,
): () => MaybePromise<Revision> {
  return replica === alone ? revision : () => after(replica.joined(), revision)
}
