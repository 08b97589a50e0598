import { drawId } from '../../../../core/draw-id.ts'
import type { Replica, ReplicaProgress, ReplicaRegistry } from '../../../../core/replicas/registry.ts'
import type { Database } from '../connection/database.ts'
import { createForget, SERVER_NOW } from './forget.ts'
import { createMembership, LISTED_FOR_MS, type Registration } from './membership.ts'
import type { Revisions } from '../revisions.ts'

/** Milliseconds after the end of its lease from which on a replica that is not heard of counts as gone. */
const liveForMs = 5_000

/** Milliseconds after the end of its lease after which a replica is cleared away, and how many are at once. */
const forgotten = { afterMs: 3_600_000, atOnce: 100 }

export function createReplicaRegistry(
  database: Database,
  revisions: Pick<Revisions, 'current'>,
): ReplicaRegistry {
  const forgetReplicas = createForget(database, {
    table: 'replica',
    key: ['id'],
    until: 'seen_at + lease_ms',
    atOnce: forgotten.atOnce,
  })
  const members = new Set<() => void>()
  let isListening = false

  /** One ear for all: nothing that has begun to listen to a database can be told to stop. */
  function heed(hurry: () => void): () => void {
    members.add(hurry)
    if (!isListening) database.listen(() => members.forEach((member) => member()))
    isListening = true
    return () => void members.delete(hurry)
  }

  function registrationOf({ name, leaseMs, skewMs = () => 0 }: Replica): Registration {
    const id = drawId('rep_')
    return {
      async enter() {
        // Not behind the answers, as what replicas confirm: a server that forgot the replica would have it waited for
        // by nobody.
        const [row] = await database.write<[now: number]>(enter, [id, name, Math.ceil(leaseMs)])
        forgetReplicas(row![0] - forgotten.afterMs)
      },
      async confirm({ facts, content }) {
        const [row] = await database.note<[others: number]>(confirm, [
          id,
          name,
          Math.ceil(leaseMs),
          facts,
          content,
          skewMs(),
        ])
        return 1 + row![0]
      },
      async leave() {
        await database.note('DELETE FROM partner_api.replica WHERE id = $1', [id])
      },
    }
  }

  return {
    join: (replica) => createMembership(replica, registrationOf(replica), heed),

    async progress(revision) {
      const [current, rows] = await Promise.all([
        revisions.current(),
        database.lookUp<ProgressRow>(progress),
      ])
      // The number of changes alone does not do: a server that took over without the last ones counts them again.
      const has = (facts: string, asked: string, now: string) => facts === asked || facts === now
      return rows.map(([id, name, leaseMs, facts, content, skewMs]): ReplicaProgress => ({
        id,
        name,
        applied: has(facts, revision.facts, current.facts) && has(content, revision.content, current.content),
        leaseMs,
        skewMs,
      }))
    },
  }
}

type ProgressRow = [id: string, name: string, leaseMs: number, facts: string, content: string, skewMs: number]

const enter = `
  INSERT INTO partner_api.replica (id, name, lease_ms, facts, content, seen_at)
  VALUES ($1, $2, $3, '', '', ${SERVER_NOW})
  ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
  RETURNING seen_at`

const confirm = `
  WITH confirmed AS (
    INSERT INTO partner_api.replica (id, name, lease_ms, facts, content, skew_ms, seen_at)
    VALUES ($1, $2, $3, $4, $5, $6, ${SERVER_NOW})
    ON CONFLICT (id) DO UPDATE SET
      facts = excluded.facts, content = excluded.content, skew_ms = excluded.skew_ms, seen_at = excluded.seen_at
  )
  SELECT count(*) FROM partner_api.replica
  WHERE id <> $1 AND seen_at + lease_ms + ${liveForMs} > ${SERVER_NOW}`

const progress = `
  SELECT id, name, lease_ms, facts, content, skew_ms FROM partner_api.replica
  WHERE seen_at + lease_ms + ${LISTED_FOR_MS} > ${SERVER_NOW} ORDER BY id`
