/** The registration of this process among the replicas of its store, and receipts of changes. */
import type { StalenessBounds } from './cache/revision-cache.ts'
import { assertStore } from './lib/options.ts'
import { delay, type MaybePromise } from './lib/promise.ts'
import type { Revision } from './ports/facts.ts'
import type { Replica, ReplicaProgress, ReplicaRegistration } from './ports/replicas.ts'
import type { Store } from './ports/store.ts'

/** Often enough that requests need not revalidate: they do so from half the bound on. */
const revalidationsPerBound = 2.5
/** Milliseconds between revalidations, for any bound; `unbound` is for a max staleness of 0. */
const revalidateInterval = { least: 50, most: 1_000, unbound: 500 }

/** Registers this process among the replicas of its store. */
export function registerReplica(
  register: (replica: Replica) => ReplicaRegistration,
  name: string,
  { maxStalenessMs, staleIfErrorMs = 0 }: StalenessBounds,
  revalidate: () => MaybePromise<Revision>,
  skewMs: () => number,
): ReplicaRegistration {
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

/** How one replica applied a change. */
export interface ReplicaReceipt {
  /** The replica's name. */
  readonly name: string
  /**
   * Whether it confirmed the change, or reads the revision for every request. Otherwise it deregistered or its lease
   * ended, and it uses nothing older any more.
   */
  readonly applied: boolean
  /** Milliseconds from the change until then. */
  readonly ms: number
  /** Milliseconds by which its clock is ahead of the store's; 0 while that is within its bounds. */
  readonly skewMs: number
}

/** Confirmation that a change is in force everywhere. */
export interface Receipt {
  /** Milliseconds from the change until it was in force everywhere. */
  readonly ms: number
  /** Every replica that was running at the time of the change, the slowest last. */
  readonly replicas: readonly ReplicaReceipt[]
}

const pollIntervalMs = { first: 2, longest: 25 }

/**
 * Waits until the changes so far are in force on every replica: until each has confirmed them, or its lease has ended.
 *
 * @param changedAt When the last change was committed, on `performance.now()`. Default: now.
 * @throws what the store throws, when it is still down at the end of the longest lease.
 */
export async function awaitReceipt(
  store: Pick<Store, 'revision' | 'replicas'>,
  changedAt: number = performance.now(),
): Promise<Receipt> {
  assertStore('awaitReceipt', store)
  const { replicas } = store
  const elapsed = (): number => Math.round(performance.now() - changedAt)
  const revision = await store.revision()
  const receipts = new Map<string, ReplicaReceipt>()
  const unregistered = new Set<string>()
  let pending = await replicas.progress(revision)
  const longestLeaseMs = Math.max(0, ...pending.map(({ leaseMs }) => leaseMs))

  /**
   * A replica that is no longer listed has deregistered, or its lease ended; a new one never knew an older revision.
   */
  async function refresh(before: readonly ReplicaProgress[]): Promise<readonly ReplicaProgress[]> {
    try {
      const now = new Map((await replicas.progress(revision)).map((replica) => [replica.id, replica]))
      for (const { id } of before) if (!now.has(id)) unregistered.add(id)
      return before.map((replica) => now.get(replica.id) ?? replica)
    } catch (error) {
      if (elapsed() >= longestLeaseMs) throw error
      return before
    }
  }

  for (let pause = pollIntervalMs.first;; pause = Math.min(pause * 2, pollIntervalMs.longest)) {
    const ms = elapsed()
    const isDone = ({ id, applied, leaseMs }: ReplicaProgress): boolean =>
      applied || ms >= leaseMs || unregistered.has(id)
    for (const { id, name, applied, leaseMs, skewMs } of pending.filter(isDone)) {
      receipts.set(id, { name, applied: applied || leaseMs === 0, ms, skewMs })
    }
    pending = pending.filter((replica) => !isDone(replica))
    if (pending.length === 0) return { ms, replicas: [...receipts.values()] }
    await delay(pause)
    pending = await refresh(pending)
  }
}
