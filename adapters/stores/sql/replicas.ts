/** The registration of a replica in a store that several processes share. */
import { drawId } from '../../../core/lib/ids.ts'
import { completesWithin, type MaybePromise } from '../../../core/lib/promise.ts'
import type { Revision } from '../../../core/ports/facts.ts'
import type { Replica, ReplicaProgress, ReplicaRegistration } from '../../../core/ports/replicas.ts'
import { StoreError } from '../../../core/ports/store-error.ts'

/**
 * Milliseconds for which a replica stays registered after the end of its lease: by then, its cached facts are unusable.
 */
export const REPLICA_RETENTION_MS = 60_000

/** Milliseconds after the end of its lease at which a silent replica no longer counts as live. */
export const LIVE_GRACE_MS = 5_000

/** Milliseconds that a server waits for its deregistration; without an answer, the registration expires by itself. */
const deregisterTimeoutMs = 2_000

/** Id, name and milliseconds of the lease. */
export type ReplicaIdentity = readonly [id: string, name: string, leaseMs: number]

/** The statements of a store for one of its replicas. */
export interface ReplicaStatements {
  register(identity: ReplicaIdentity): MaybePromise<void>
  /** @returns The number of other live replicas. */
  confirm(identity: ReplicaIdentity, revision: Revision, skewMs: number): MaybePromise<number>
  remove(id: string): MaybePromise<void>
  /** Calls back when there may be a new revision. @returns A function that ends the subscription. */
  listen(callback: () => void): () => void
}

/**
 * Confirms revisions while the replica is registered: as often as it wants, and whenever there may be a new one. What
 * fails is repeated the next time.
 */
export function createRegistration(
  store: ReplicaStatements,
  { name, leaseMs, skewMs, revalidate, revalidateEveryMs }: Replica,
): ReplicaRegistration {
  const identity = [drawId('rep_'), name, Math.ceil(leaseMs)] as const
  let state: 'unregistered' | 'registered' | 'closed' = 'unregistered'
  let registering: Promise<void> | undefined
  let confirming: Promise<unknown> | undefined
  let live = 1
  /** When the last statement was sent: the monotonic clock may stand still while the machine sleeps. */
  let lastContact = never
  let unsubscribe = (): void => undefined
  const poller = createPoller(poll, revalidateEveryMs)

  async function register(): Promise<void> {
    const now = instant()
    try {
      await store.register(identity)
    } finally {
      registering = undefined
    }
    assertOpen()
    lastContact = now
    state = 'registered'
    unsubscribe = store.listen(poller.pollNow)
    poller.pollNow()
  }

  function assertOpen(): void {
    if (state === 'closed') throw new StoreError('unreachable', 'The replica is deregistered.')
  }

  async function poll(): Promise<void> {
    const revision = await revalidate()
    if (state !== 'registered') return
    const now = instant()
    const confirmation = Promise.resolve(store.confirm(identity, revision, skewMs()))
    confirming = confirmation
    live = 1 + await confirmation
    lastContact = now
  }

  return {
    registered() {
      assertOpen()
      // After longer silence, it may have been removed. Half of the time, as clocks differ.
      if (state === 'registered' && ageOf(lastContact) < REPLICA_RETENTION_MS / 2) return undefined
      return registering ??= register()
    },
    replicaCount: () => live,
    async deregister() {
      if (state === 'closed') return
      const mayBeStored = state === 'registered' || registering !== undefined
      state = 'closed'
      poller.stop()
      unsubscribe()
      if (mayBeStored) await removeAfter([registering, confirming], () => store.remove(identity[0]))
    },
  }
}

/** Removes a registration once the statements in flight have ended. */
async function removeAfter(inFlight: readonly unknown[], remove: () => MaybePromise<void>): Promise<void> {
  const removed = Promise.allSettled(inFlight).then(remove)
  await completesWithin(deregisterTimeoutMs, removed.catch(() => undefined))
}

/** Polls whenever there may be news, one poll at a time, and otherwise after each `everyMs`. Ignores failures. */
function createPoller(poll: () => Promise<void>, everyMs: number) {
  let isPolling = false
  let isDue = false
  let isStopped = false
  let timer: NodeJS.Timeout | undefined

  async function run(): Promise<void> {
    isPolling = true
    while (isDue && !isStopped) {
      // A notification from now on may be about a later revision.
      isDue = false
      await poll().catch(() => undefined)
    }
    isPolling = false
    if (!isStopped) timer = setTimeout(pollNow, everyMs).unref()
  }

  function pollNow(): void {
    isDue = true
    if (isPolling) return
    clearTimeout(timer)
    void run()
  }

  function stop(): void {
    isStopped = true
    clearTimeout(timer)
  }

  return { pollNow, stop }
}

/** An instant on both clocks, which is long ago on either. */
export const never = { at: 0, date: 0 }

/** The current instant on both clocks. */
export function instant(): typeof never {
  return { at: performance.now(), date: Date.now() }
}

/** Milliseconds since an instant, by the clock on which more have passed. */
export function ageOf({ at, date }: typeof never): number {
  return Math.max(performance.now() - at, Date.now() - date)
}

export type ProgressRow = [
  id: string,
  name: string,
  leaseMs: number,
  facts: string,
  content: string,
  skewMs: number,
]

/** Revisions have no order: the one asked for counts, and the current one. */
export function toProgress(
  rows: readonly ProgressRow[],
  ...revisions: readonly Revision[]
): ReplicaProgress[] {
  const hasApplied = (kind: keyof Revision, applied: string) =>
    revisions.some((revision) => revision[kind] === applied)
  return rows.map(([id, name, leaseMs, facts, content, skewMs]) => {
    const applied = hasApplied('facts', facts) && hasApplied('content', content)
    return { id, name, applied, leaseMs, skewMs }
  })
}
