import type { ReplicaRegistry } from '../../../core/ports/replicas.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import { pruneSql, type SqlDatabase } from '../sql/database.ts'
import {
  ageOf,
  createRegistration,
  instant,
  LIVE_GRACE_MS,
  never,
  type ProgressRow,
  REPLICA_RETENTION_MS,
  type ReplicaStatements,
  toProgress,
} from '../sql/replicas.ts'
import type { PostgresDatabase } from './database.ts'
import type { Revisions } from './revisions.ts'
import { DIALECT, SERVER_NOW } from './sql.ts'

/**
 * Milliseconds between confirmations without a change. Each is a write, and counts all replicas: with each poll, a
 * thousand servers would keep a core of the database busy.
 */
const heartbeatMs = 2_000
/** When replicas are pruned, after the end of their lease. */
const pruneAfterMs = 3_600_000
const pruneReplicasSql = pruneSql(DIALECT, {
  table: 'replica',
  key: ['id'],
  expiry: 'seen_at + lease_ms',
  batchSize: 100,
})

export function createReplicaRegistry(
  database: PostgresDatabase,
  { prune }: SqlDatabase,
  revisions: Revisions,
): ReplicaRegistry {
  function createStatements(): ReplicaStatements {
    let written = ''
    let beat = never
    let others = 0

    return {
      async register(identity) {
        written = ''
        // Committed synchronously: if a crash undid it, receipts would not wait for the replica.
        const [row] = await database.write<[now: number]>(registerSql, identity)
        prune(pruneReplicasSql, [row![0] - pruneAfterMs])
      },
      async confirm(identity, { facts, content }, skewMs) {
        const row = [...identity, facts, content, skewMs]
        const isBeat = ageOf(beat) >= heartbeatMs
        if (!isBeat && written === row.join()) return others
        const now = instant()
        const [counted] = await database.asyncCommit<[count: number]>(isBeat ? beatSql : confirmSql, row)
        written = row.join()
        if (isBeat) [beat, others] = [now, counted![0]]
        return others
      },
      async remove(id) {
        await database.asyncCommit('DELETE FROM partner_api.replica WHERE id = $1', [id])
      },
      listen: database.listen,
    }
  }

  return {
    register: (replica) => createRegistration(createStatements(), replica),
    async progress(revision) {
      const [current, rows] = await Promise.all([
        revisions.current(),
        database.lookUp<ProgressRow>(progressSql),
      ])
      return toProgress(rows, revision, current)
    },
  }
}

/** The replicas that use a store. */
export const LIVE_REPLICAS = `partner_api.replica WHERE seen_at + lease_ms + ${LIVE_GRACE_MS} > ${SERVER_NOW}`

export function inUseError(location: string, names: readonly string[]): StoreError {
  const detail = 'Stop them first; one that was killed counts for a minute.'
  return new StoreError('refused', `Servers use the store ${location}: ${names.join(', ')}. ${detail}`)
}

/**
 * Registers a replica, and removes others of its name whose lease has ended. They were killed before they started
 * again under that name, and receipts would name them twice.
 */
const registerSql = `
  WITH ended AS (
    DELETE FROM partner_api.replica WHERE name = $2 AND id <> $1 AND seen_at + lease_ms + ${heartbeatMs} < ${SERVER_NOW}
  )
  INSERT INTO partner_api.replica (id, name, lease_ms, facts, content, seen_at)
  VALUES ($1, $2, $3, '', '', ${SERVER_NOW})
  ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
  RETURNING seen_at`

const confirmSql = `
  INSERT INTO partner_api.replica (id, name, lease_ms, facts, content, skew_ms, seen_at)
  VALUES ($1, $2, $3, $4, $5, $6, ${SERVER_NOW})
  ON CONFLICT (id) DO UPDATE SET
    facts = excluded.facts, content = excluded.content, skew_ms = excluded.skew_ms, seen_at = excluded.seen_at`

const beatSql = `
  WITH confirmed AS (${confirmSql})
  SELECT count(*) FROM ${LIVE_REPLICAS} AND id <> $1`

const progressSql = `
  SELECT id, name, lease_ms, facts, content, skew_ms FROM partner_api.replica
  WHERE seen_at + lease_ms + ${REPLICA_RETENTION_MS} > ${SERVER_NOW} ORDER BY id`
