import { drawId } from '../../../core/lib/ids.ts'
import { completesWithin } from '../../../core/lib/promise.ts'
import type { Revision } from '../../../core/ports/facts.ts'
import type { Replica, ReplicaRegistration, ReplicaRegistry } from '../../../core/ports/replicas.ts'
import { StoreError } from '../store-error.ts'
import type { Database } from './database.ts'
import type { Revisions } from './revisions.ts'
import { createPruner, SERVER_NOW } from './sql.ts'

/**
 * Milliseconds, beyond its lease, for which a replica stays registered after it was last heard of: by then it cannot use
 * what it knew any more.
 */
const retentionMs = 60_000

/** Milliseconds after the end of its lease at which a silent replica no longer counts as live. */
const liveGraceMs = 5_000

/** Without an answer in time, the registration expires by itself. */
const deregisterTimeoutMs = 2_000

/** When replicas are pruned, after the end of their lease, and how many at once. */
const pruning = { afterMs: 3_600_000, batchSize: 100 }

export function createReplicaRegistry(
  database: Database,
  revisions: Pick<Revisions, 'current'>,
): ReplicaRegistry {
  const prune = createPruner(database, {
    table: 'replica',
    key: ['id'],
    expiry: 'seen_at + lease_ms',
    batchSize: pruning.batchSize,
  })
  return {
    register: (replica) => createRegistration(database, replica, (now) => prune(now - pruning.afterMs)),

    async progress(revision) {
      const [current, rows] = await Promise.all([
        revisions.current(),
        database.lookUp<ProgressRow>(progressSql),
      ])
      // Revisions have no order: the one asked for counts, and the current one.
      const hasApplied = (kind: keyof Revision, applied: string) =>
        applied === revision[kind] || applied === current[kind]
      return rows.map(([id, name, leaseMs, facts, content, skewMs]) => {
        const applied = hasApplied('facts', facts) && hasApplied('content', content)
        return { id, name, applied, leaseMs, skewMs }
      })
    },
  }
}

/**
 * Confirms revisions while the replica is registered: as often as it wants, and whenever there may be a new one. What
 * fails is repeated the next time.
 */
function createRegistration(
  database: Database,
  { name, leaseMs, skewMs = () => 0, revalidate, revalidateEveryMs }: Replica,
  prune: (now: number) => void,
): ReplicaRegistration {
  const identity = [drawId('rep_'), name, Math.ceil(leaseMs)] as const
  let state: 'unregistered' | 'registered' | 'closed' = 'unregistered'
  let registering: Promise<void> | undefined
  let isPolling = false
  let isPollDue = false
  let confirming: Promise<unknown> | undefined
  let timer: NodeJS.Timeout | undefined
  let live = 1
  /** When the last statement was sent: the monotonic clock may stand still while the machine sleeps. */
  let lastContact = { at: 0, date: 0 }
  let unsubscribe = (): void => undefined

  async function register(): Promise<void> {
    const now = instant()
    try {
      // Committed synchronously: if a crash undid it, receipts would not wait for the replica.
      const [row] = await database.write<[now: number]>(registerSql, identity)
      prune(row![0])
    } finally {
      registering = undefined
    }
    assertOpen()
    lastContact = now
    state = 'registered'
    unsubscribe = database.listen(pollNow)
    pollNow()
  }

  function assertOpen(): void {
    if (state === 'closed') throw new StoreError('unreachable', 'The replica is deregistered.')
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
    const { facts, content } = await revalidate()
    if (state !== 'registered') return
    const now = instant()
    const confirmation = database.asyncCommit<[others: number]>(
      confirmSql,
      [...identity, facts, content, skewMs()],
    )
    confirming = confirmation
    const [row] = await confirmation
    live = 1 + row![0]
    lastContact = now
  }

  async function remove(): Promise<void> {
    await registering?.catch(() => undefined)
    await confirming?.catch(() => undefined)
    await database.asyncCommit('DELETE FROM partner_api.replica WHERE id = $1', [identity[0]])
  }

  return {
    registered() {
      assertOpen()
      // After longer silence, it may have been removed. Half of the time, as clocks differ.
      if (state === 'registered' && ageOf(lastContact) < retentionMs / 2) return undefined
      return registering ??= register()
    },

    replicaCount: () => live,

    async deregister() {
      if (state === 'closed') return
      const mayBeStored = state === 'registered' || registering !== undefined
      state = 'closed'
      clearTimeout(timer)
      unsubscribe()
      if (mayBeStored) await completesWithin(deregisterTimeoutMs, remove().catch(() => undefined))
    },
  }
}

function instant(): { at: number; date: number } {
  return { at: performance.now(), date: Date.now() }
}

function ageOf({ at, date }: { at: number; date: number }): number {
  return Math.max(performance.now() - at, Date.now() - date)
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
  WHERE seen_at + lease_ms + ${retentionMs} > ${SERVER_NOW} ORDER BY id`
