import type { StalenessBounds } from '../cache/revision-cache.ts'
import { andThen, type MaybePromise } from '../lib/promise.ts'
import type { Revision } from '../ports/facts.ts'
import type { ReplicaRegistration, ReplicaRegistry } from '../ports/replicas.ts'
import type { PortTimeouts } from '../ports/with-timeouts.ts'

/** A process that shares its store with nobody, or whose store does not know. */
const standalone: ReplicaRegistration = {
  registered: () => undefined,
  replicaCount: () => 1,
  deregister: () => Promise.resolve(),
}

/** Confirmed this often, what is known is not so old yet that a request asks by itself. */
const revalidationsPerBound = 2.5
/** Milliseconds between confirmations, whatever the bound: replicas are to be heard of, and not all the time. */
const revalidateInterval = { least: 50, most: 1_000, unbound: 500 }

/**
 * This process among the replicas of its store.
 *
 * @param revalidate Asks for the revision of the store, see `Replica`.
 * @param skewMs See `Replica`.
 */
export function registerReplica(
  registry: ReplicaRegistry | undefined,
  guard: PortTimeouts,
  name: string,
  { maxStalenessMs, staleIfErrorMs = 0 }: StalenessBounds,
  revalidate: () => MaybePromise<Revision>,
  skewMs: () => number,
): ReplicaRegistration {
  if (registry === undefined) return standalone
  const { least, most, unbound } = revalidateInterval
  return guard.membership(registry.register({
    name,
    leaseMs: maxStalenessMs + staleIfErrorMs,
    revalidateEveryMs: maxStalenessMs === 0
      ? unbound
      : Math.min(Math.max(maxStalenessMs / revalidationsPerBound, least), most),
    revalidate: async () => await revalidate(),
    skewMs,
  }))
}

/** Reads the revision as a replica that the store knows of. */
export function afterRegistration(
  replica: ReplicaRegistration,
  revision: () => MaybePromise<Revision>,
): () => MaybePromise<Revision> {
  return replica === standalone ? revision : () => andThen(replica.registered(), revision)
}
