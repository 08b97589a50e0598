import type { StalenessBounds } from '../cache/revision-cache.ts'
import type { MaybePromise } from '../lib/promise.ts'
import type { Revision } from '../ports/facts.ts'
import type { Replica, ReplicaRegistration } from '../ports/replicas.ts'

/** The registration in a store without other replicas. */
const standalone: ReplicaRegistration = {
  registered: () => undefined,
  replicaCount: () => 1,
  deregister: () => Promise.resolve(),
}

/** Often enough that requests need not revalidate: they do so from half the bound on. */
const revalidationsPerBound = 2.5
/** Milliseconds between revalidations, for any bound; `unbound` is for a max staleness of 0. */
const revalidateInterval = { least: 50, most: 1_000, unbound: 500 }

/** Registers this process among the replicas of its store, if that has a registry. */
export function registerReplica(
  register: ((replica: Replica) => ReplicaRegistration) | undefined,
  name: string,
  { maxStalenessMs, staleIfErrorMs = 0 }: StalenessBounds,
  revalidate: () => MaybePromise<Revision>,
  skewMs: () => number,
): ReplicaRegistration {
  if (register === undefined) return standalone
  const { least, most, unbound } = revalidateInterval
  return register({
    name,
    leaseMs: maxStalenessMs + staleIfErrorMs,
    revalidateEveryMs: maxStalenessMs === 0
      ? unbound
      : Math.min(Math.max(maxStalenessMs / revalidationsPerBound, least), most),
    revalidate: async () => await revalidate(),
    skewMs,
  })
}
