import { drawId } from '../../../core/lib/ids.ts'
import { completesWithin } from '../../../core/lib/promise.ts'
import type { Revision } from '../../../core/ports/facts.ts'
import type {
  Replica,
  ReplicaProgress,
  ReplicaRegistration,
  ReplicaRegistry,
} from '../../../core/ports/replicas.ts'
import { StoreError } from '../store-error.ts'
import type { Database } from './database.ts'
import type { Revisions } from './revisions.ts'
import { createPruner, SERVER_NOW } from './sql.ts'

interface Registration {
  /** Durable when it resolves. */
  register(): Promise<void>
  /** Records what the replica has applied, and registers it again if needed. @returns Live replicas. */
  confirm(revision: Revision): Promise<number>
  deregister(): Promise<void>
}

/**
 * Milliseconds, beyond its lease, for which a replica stays registered after it was last heard of: by then it cannot use
 * what it knew any more.
 */
const REPLICA_RETENTION_MS = 60_000

/** Without an answer in time, the registration expires by itself. */
const deregisterTimeoutMs = 2_000

/**
 * Confirms revisions while a replica is registered: as often as the replica wants, and whenever there may be a new one.
 * What fails is repeated the next time.
 *
 * @param subscribe Calls back whenever there may be a new revision. Returns how to unsubscribe.
 */
function createMembership(
  { revalidate, revalidateEveryMs }: Replica,
  registration: Registration,
  subscribe: (pollNow: () => void) => () => void,
): ReplicaRegistration {
  let state: 'unregistered' | 'registered' | 'closed' = 'unregistered'
  let registering: Promise<void> | undefined
  let isPolling = false
  let isPollDue = false
  let lastConfirmation: Promise<number> | undefined
  let timer: NodeJS.Timeout | undefined
  let live = 1
  /** When the last confirmation was sent: the monotonic clock may stand still while the machine sleeps. */
  let lastContact = { at: 0, date: 0 }
  let unsubscribe = (): void => undefined

  async function register(): Promise<void> {
    const now = instant()
    try {
      await registration.register()
    } finally {
      registering = undefined
    }
    assertOpen()
    lastContact = now
    state = 'registered'
    unsubscribe = subscribe(pollNow)
    pollNow()
  }

  function assertOpen(): void {
    if (state === 'closed') {
      throw new StoreError('unreachable', 'The store was left: it tells this replica no more.')
    }
  }

  function pollNow(): void {
    isPollDue = true
    if (isPolling) return
    clearTimeout(timer)
    void pollLoop()
  }

  async function pollLoop(): Promise<void> {
    isPolling = true
    while (isPollDue && state === 'registered') {
      // A notification from now on may be about a later revision.
      isPollDue = false
      await poll().catch(() => undefined)
    }
    isPolling = false
    if (state === 'registered') timer = setTimeout(pollNow, revalidateEveryMs).unref()
  }

  async function poll(): Promise<void> {
    const revision = await revalidate()
    if (state !== 'registered') return
    const now = instant()
    lastConfirmation = registration.confirm(revision)
    live = await lastConfirmation
    lastContact = now
  }

  async function deregister(): Promise<void> {
    await registering?.catch(() => undefined)
    await lastConfirmation?.catch(() => undefined)
    await registration.deregister()
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
      const wasUnregistered = state === 'unregistered' && registering === undefined
      if (state === 'closed') return
      state = 'closed'
      clearTimeout(timer)
      unsubscribe()
      if (wasUnregistered) return
      await completesWithin(deregisterTimeoutMs, deregister().catch(() => undefined))
    },
  }
}

function instant(): { at: number; date: number } {
  return { at: performance.now(), date: Date.now() }
}

function ageOf({ at, date }: { at: number; date: number }): number {
  return Math.max(performance.now() - at, Date.now() - date)
}

/** Milliseconds after the end of its lease at which a silent replica no longer counts as live. */
const liveGraceMs = 5_000

/** When replicas are pruned, after the end of their lease, and how many at once. */
const pruning = { afterMs: 3_600_000, batchSize: 100 }

export function createReplicaRegistry(
  database: Database,
  revisions: Pick<Revisions, 'current'>,
): ReplicaRegistry {
  const pruneReplicas = createPruner(database, {
    table: 'replica',
    key: ['id'],
    expiry: 'seen_at + lease_ms',
    batchSize: pruning.batchSize,
  })
  const listeners = new Set<() => void>()
  let isListening = false

  /** One LISTEN for all: a database cannot unlisten. */
  function subscribe(pollNow: () => void): () => void {
    listeners.add(pollNow)
    if (!isListening) database.listen(() => listeners.forEach((member) => member()))
    isListening = true
    return () => void listeners.delete(pollNow)
  }

  function registrationOf({ name, leaseMs, skewMs = () => 0 }: Replica): Registration {
    const id = drawId('rep_')
    return {
      async register() {
        // Committed synchronously: if a crash undid it, receipts would not wait for the replica.
        const [row] = await database.write<[now: number]>(registerSql, [id, name, Math.ceil(leaseMs)])
        pruneReplicas(row![0] - pruning.afterMs)
      },
      async confirm({ facts, content }) {
        const [row] = await database.asyncCommit<[others: number]>(confirmSql, [
          id,
          name,
          Math.ceil(leaseMs),
          facts,
          content,
          skewMs(),
        ])
        return 1 + row![0]
      },
      async deregister() {
        await database.asyncCommit('DELETE FROM partner_api.replica WHERE id = $1', [id])
      },
    }
  }

  return {
    register: (replica) => createMembership(replica, registrationOf(replica), subscribe),

    async progress(revision) {
      const [current, rows] = await Promise.all([
        revisions.current(),
        database.lookUp<ProgressRow>(progressSql),
      ])
      // Revisions have no order: the one asked for counts, and the current one.
      const hasApplied = (facts: string, asked: string, now: string) => facts === asked || facts === now
      return rows.map(([id, name, leaseMs, facts, content, skewMs]): ReplicaProgress => ({
        id,
        name,
        applied: hasApplied(facts, revision.facts, current.facts) &&
          hasApplied(content, revision.content, current.content),
        leaseMs,
        skewMs,
      }))
    },
  }
}

type ProgressRow = [id: string, name: string, leaseMs: number, facts: string, content: string, skewMs: number]

const registerSql = `
  INSERT INTO partner_api.replica (id, name, lease_ms, facts, content, seen_at)
  VALUES ($1, $2, $3, '', '', ${SERVER_NOW})
  ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
  RETURNING seen_at`

const confirmSql = `
  WITH confirmed AS (
    INSERT INTO partner_api.replica (id, name, lease_ms, facts, content, skew_ms, seen_at)
    VALUES ($1, $2, $3, $4, $5, $6, ${SERVER_NOW})
    ON CONFLICT (id) DO UPDATE SET
      facts = excluded.facts, content = excluded.content, skew_ms = excluded.skew_ms, seen_at = excluded.seen_at
  )
  SELECT count(*) FROM partner_api.replica
  WHERE id <> $1 AND seen_at + lease_ms + ${liveGraceMs} > ${SERVER_NOW}`

const progressSql = `
  SELECT id, name, lease_ms, facts, content, skew_ms FROM partner_api.replica
  WHERE seen_at + lease_ms + ${REPLICA_RETENTION_MS} > ${SERVER_NOW} ORDER BY id`
