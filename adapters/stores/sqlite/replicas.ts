import { readlinkSync } from 'node:fs'
import process from 'node:process'
import type { Revision } from '../../../core/ports/facts.ts'
import type { ReplicaRegistry } from '../../../core/ports/replicas.ts'
import {
  createRegistration,
  LIVE_GRACE_MS,
  type ProgressRow,
  type ReplicaIdentity,
  type ReplicaStatements,
  RETENTION_MS,
  toProgress,
} from '../replicas.ts'
import type { Revisions } from './revisions.ts'
import type { Prepare, ServersFile } from './servers-file.ts'

/** Less than half of the retention: after the other half, a silent replica registers anew. */
const heartbeatMs = 20_000

/** A replica writes when it starts and stops, when it has applied a change, and three times a minute. */
export function createReplicaRegistry(
  file: ServersFile,
  revisions: Pick<Revisions, 'current'>,
): ReplicaRegistry {
  return {
    register: (replica) => createRegistration(createStatements(file), replica),
    progress(revision) {
      if (!file.exists()) return []
      return file.use((prepare) => toProgress(readLive(prepare, RETENTION_MS), revision, revisions.current()))
    },
  }
}

function createStatements(file: ServersFile): ReplicaStatements {
  let written = { facts: '', content: '', at: -Infinity }

  function write(prepare: Prepare, identity: ReplicaIdentity, { facts, content }: Revision): void {
    const at = Date.now()
    prepare(upsertSql).run(...identity, facts, content, at, process.pid, pidNamespace)
    written = { facts, content, at }
  }

  return {
    register: (identity) =>
      file.use((prepare) => {
        prepare(pruneSql).run(Date.now() - RETENTION_MS)
        write(prepare, identity, written)
      }),
    confirm: (identity, revision) =>
      file.use((prepare) => {
        const { facts, content, at } = written
        const isWritten = facts === revision.facts && content === revision.content
        if (!isWritten || Math.abs(Date.now() - at) >= heartbeatMs) write(prepare, identity, revision)
        const live = readLive(prepare, heartbeatMs + LIVE_GRACE_MS)
        return live.filter(([id]) => id !== identity[0]).length
      }),
    remove: (id) => file.use((prepare) => void prepare(removeSql).run(id)),
  }
}

/** The replicas that were heard of until so many milliseconds after their lease and whose process has not ended. */
function readLive(prepare: Prepare, graceMs: number): ProgressRow[] {
  return prepare<[pid: number, namespace: string, ...ProgressRow]>(selectSql).all(Date.now() - graceMs)
    .flatMap(([pid, namespace, ...row]) => namespace === pidNamespace && hasEnded(pid) ? [] : [row])
}

function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** Where process ids mean the same: containers have their own. Deno would ask for permission. */
const pidNamespace = process.versions['deno'] !== undefined
  ? `deno:${process.pid}:${performance.timeOrigin}`
  : process.platform === 'linux'
  ? readlinkSync('/proc/self/ns/pid')
  : process.platform

const upsertSql = `
  INSERT INTO replica (id, name, lease_ms, facts, content, seen_at, pid, pid_namespace)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
  ON CONFLICT (id) DO UPDATE SET facts = excluded.facts, content = excluded.content, seen_at = excluded.seen_at`

const selectSql = `
  SELECT pid, pid_namespace, id, name, lease_ms, facts, content, 0 FROM replica
  WHERE seen_at + lease_ms > ?1 ORDER BY id`

const pruneSql = 'DELETE FROM replica WHERE seen_at + lease_ms <= ?1'
const removeSql = 'DELETE FROM replica WHERE id = ?1'
