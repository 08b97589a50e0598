import { delay } from '../lib/promise.ts'
import type { FactSource } from '../ports/facts.ts'
import type { ReplicaProgress } from '../ports/replicas.ts'
import type { Store } from '../ports/store.ts'

/** What became of a change at one replica. */
export interface ReplicaReceipt {
  /** What the replica calls itself. */
  readonly name: string
  /**
   * Whether it said that it has applied the change, or asks for every request what applies. If not, it took leave or was
   * not heard of for its whole lease, and uses nothing older any more.
   */
  readonly applied: boolean
  /** Milliseconds from the change to that. */
  readonly ms: number
  /** Milliseconds by which its clock is ahead of the store's; 0 while that is within its bounds. */
  readonly skewMs: number
}

/** That a change binds everywhere. */
export interface Receipt {
  /** Milliseconds from the change until it bound everywhere. */
  readonly ms: number
  /** Every replica that was running when the change was made, the slowest last. */
  readonly replicas: readonly ReplicaReceipt[]
}

const pollIntervalMs = { first: 2, longest: 25 }

/**
 * Waits until what was changed so far binds every replica: until each has said so, or its lease is over.
 *
 * @returns `undefined` when the store does not know who shares it: then the change binds within the max staleness.
 * @throws what the store throws, when it is still silent at the end of the longest lease.
 */
export async function awaitReceipt(
  store: Pick<FactSource, 'revision'> & Pick<Store, 'replicas'>,
): Promise<Receipt | undefined> {
  const { replicas } = store
  if (replicas === undefined) return undefined
  const changedAt = performance.now()
  const elapsed = (): number => Math.round(performance.now() - changedAt)
  const revision = await store.revision()
  const receipts = new Map<string, ReplicaReceipt>()
  const unregistered = new Set<string>()
  let pending = await replicas.progress(revision)
  const longestLeaseMs = Math.max(0, ...pending.map(({ leaseMs }) => leaseMs))

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

  /** One that is listed no more has taken leave, or its lease ended long ago; one that came since knows nothing older. */
  async function refresh(before: readonly ReplicaProgress[]): Promise<readonly ReplicaProgress[]> {
    try {
      const now = new Map((await replicas!.progress(revision)).map((replica) => [replica.id, replica]))
      for (const { id } of before) if (!now.has(id)) unregistered.add(id)
      return before.map((replica) => now.get(replica.id) ?? replica)
    } catch (error) {
      if (elapsed() >= longestLeaseMs) throw error
      return before
    }
  }
}
