import type { AuditRecord } from '../../../core/audit/records.ts'
import { type Clock, createClock } from '../../../core/lib/clock.ts'
import { ignoreFailure } from '../../../core/lib/promise.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import type { WebhookEvent } from '../../../core/ports/webhooks.ts'
import { appendAuditRecords } from '../sql/audit.ts'
import {
  type Dialect,
  rowsText,
  runWork,
  type SqlDatabase,
  type SqlQuery,
  type Work,
} from '../sql/database.ts'
import type { SqlValue, StoredRow } from '../sql/row-format.ts'
import { enqueueSql, EVENTS } from '../sql/webhooks.ts'
import { runWithRetry } from './busy-retry.ts'
import type { SqliteDatabase } from './database.ts'
import type { Revisions } from './revisions.ts'

export const DIALECT: Dialect = {
  now: ':now',
  elements: (parameter) => `json_each(${parameter})`,
  least: 'min',
  greatest: 'max',
  forUpdate: '',
  skipLocked: '',
  indexed: (column) => column,
  derived: () => ({}),
}

export type SqliteQuery = <R extends readonly SqlValue[] = StoredRow>(
  sql: string,
  parameters?: readonly SqlValue[],
) => R[]

/** Runs statements of both databases, each of which is prepared once. */
export function createQuery(
  database: SqliteDatabase,
  // Not the date, which may jump and come back.
  { now }: Pick<Clock, 'now'> = createClock(),
): SqliteQuery {
  const prepared = new Map<string, (parameters: readonly SqlValue[]) => StoredRow[]>()

  function prepare(sql: string): (parameters: readonly SqlValue[]) => StoredRow[] {
    const count = Math.max(0, ...Array.from(sql.matchAll(/\$(\d+)/g), ([, number]) => Number(number)))
    const text = sql.replaceAll('partner_api.', '').replace(/\$(\d+)/g, '?$1')
    const statement = database.statement<StoredRow>(text.replaceAll(':now', `?${count + 1}`))
    return text.includes(':now')
      ? (parameters) => statement.all(...parameters, now())
      : (parameters) => statement.all(...parameters)
  }

  return <R extends readonly SqlValue[]>(sql: string, parameters: readonly SqlValue[] = []) => {
    let run = prepared.get(sql)
    if (run === undefined) prepared.set(sql, run = prepare(sql))
    return run(parameters) as readonly unknown[] as R[]
  }
}

/** An `SqlDatabase` in this process: its reads and the steps of its transactions are synchronous. */
export interface LocalSqlDatabase extends SqlDatabase {
  readonly lookUp: SqliteQuery
  readonly read: SqliteQuery
  /** Runs steps at once, to be called in a transaction or a snapshot. */
  runNow<T>(work: Work<T>): T
  /** Writes audit records and the events of a change, in the transaction of the change. */
  appendAudit(
    records: readonly AuditRecord[],
    context: AuditContext,
    events?: () => readonly WebhookEvent[],
  ): void
  /** Adds events in the transaction of the change. If there are no webhooks, `events` is not called. */
  addEvents(events: () => readonly WebhookEvent[]): void
}

export function createSqlDatabase(
  database: SqliteDatabase,
  revisions: Revisions,
  clock?: Pick<Clock, 'now'>,
): LocalSqlDatabase {
  const query = createQuery(database, clock)
  const hasWebhooks = database.statement('SELECT 1 FROM webhook LIMIT 1')
  const enqueue = enqueueSql(DIALECT)
  const transactionWithRetry = <T>(work: () => T) =>
    runWithRetry(() => database.transaction(work, { wait: false }))
  const runNow = <T>(work: Work<T>) => runWork(work, query) as T

  /** A sync of the disk would delay signups. */
  const unsyncedWithRetry = <T>(work: () => T) =>
    runWithRetry(() => database.unsynced(() => database.transaction(work, { wait: false })))
  const writeUnsynced: SqlQuery = (sql, parameters) => unsyncedWithRetry(() => query(sql, parameters))

  function appendAudit(
    records: readonly AuditRecord[],
    context: AuditContext,
    events?: () => readonly WebhookEvent[],
  ): void {
    runNow(appendAuditRecords(DIALECT, records, context, events))
  }

  return {
    dialect: DIALECT,
    lookUp: query,
    read: query,
    write: (sql, parameters) => transactionWithRetry(() => query(sql, parameters)),
    writeUnsynced,
    transaction: (work) => transactionWithRetry(() => runNow(work())),
    transactionUnsynced: (work) => unsyncedWithRetry(() => runNow(work())),
    prune: (sql, parameters) => ignoreFailure(() => writeUnsynced(sql, parameters)),

    change(kind, context, work) {
      const change = () => {
        const revision = revisions.current()[kind === 'uncached' ? 'facts' : kind]
        const { result, auditRecords, events } = runNow(work(revision))
        appendAudit(auditRecords, context, events)
        if (kind !== 'uncached' && auditRecords.length > 0) revisions.bump(kind)
        return result
      }
      return kind === 'uncached' ? transactionWithRetry(change) : database.transaction(change)
    },

    appendAudit,
    runNow,

    addEvents(events) {
      if (hasWebhooks.get() !== undefined) query(enqueue, [rowsText(EVENTS, events())])
    },
  }
}
