import { drawId } from '../../../core/lib/ids.ts'
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

/** What the store is told of a replica. */
export interface Registration {
  /** Lists the replica, for good when it resolves. */
  register(): Promise<void>
  /** Says what the replica has applied, and lists it again when it is not listed any more. @returns Live replicas. */
  confirm(revision: Revision): Promise<number>
  /** Strikes it off the list. */
  deregister(): Promise<void>
}

/**
 * Milliseconds, beyond its lease, for which a replica is listed after it was heard of last: what it learns until then is
 * used up before it is off the list.
 */
export const REPLICA_RETENTION_MS = 60_000

/** How long leaving may take when the store does not answer: it is found out by itself then. */
const leaveTimeoutMs = 2_000

/**
 * Confirms one revision after another from the moment at which a replica is listed until it leaves: as often as the
 * replica wants, and whenever there may be news. What fails is tried again at the next time; until then the replica
 * uses less and less of what it knows, and the store knows why.
 *
 * @param subscribe Has what it is given called whenever there may be news, until what it returns is called.
 */
export function createMembership(
  { revalidate: confirm, revalidateEveryMs: confirmEveryMs }: Replica,
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
  /** When what the store heard of the replica last was sent, and the day: a machine that sleeps has no other clock. */
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
      // What is heard of from now on may be too late for this confirmation.
      isPollDue = false
      await poll().catch(() => undefined)
    }
    isPolling = false
    if (state === 'registered') timer = setTimeout(pollNow, confirmEveryMs).unref()
  }

  async function poll(): Promise<void> {
    const revision = await confirm()
    // Who has left is not to be listed again.
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
      // Who was cut off or stood still for longer may have been given up meanwhile. Half of it, for clocks differ.
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
      let deadline: NodeJS.Timeout | undefined
      const timeout = new Promise<void>((resolve) => deadline = setTimeout(resolve, leaveTimeoutMs))
      await Promise.race([deregister().catch(() => undefined), timeout])
      clearTimeout(deadline)
    },
  }
}

function instant(): { at: number; date: number } {
  return { at: performance.now(), date: Date.now() }
}

function ageOf({ at, date }: { at: number; date: number }): number {
  return Math.max(performance.now() - at, Date.now() - date)
}

/** Milliseconds after the end of its lease from which on a replica that is not heard of counts as gone. */
const liveGraceMs = 5_000

/** Milliseconds after the end of its lease after which a replica is cleared away, and how many are at once. */
const pruning = { afterMs: 3_600_000, atOnce: 100 }

export function createReplicaRegistry(
  database: Database,
  revisions: Pick<Revisions, 'current'>,
): ReplicaRegistry {
  const pruneReplicas = createPruner(database, {
    table: 'replica',
    key: ['id'],
    expiry: 'seen_at + lease_ms',
    batchSize: pruning.atOnce,
  })
  const listeners = new Set<() => void>()
  let isListening = false

  /** One ear for all: nothing that has begun to listen to a database can be told to stop. */
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
        // Not behind the answers, as what replicas confirm: a server that forgot the replica would have it waited for
        // by nobody.
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
      // The number of changes alone does not do: a server that took over without the last ones counts them again.
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
