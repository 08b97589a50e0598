import type { AuditRecord } from '../../../core/audit/records.ts'
import { createClock } from '../../../core/lib/clock.ts'
import { ignoreFailure } from '../../../core/lib/promise.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import type { WebhookEvent } from '../../../core/ports/webhooks.ts'
import { appendAuditRecords } from '../sql/audit.ts'
import { type Dialect, rowsText, runWork, type SqlDatabase, type Work } from '../sql/database.ts'
import type { StoredRow, Value } from '../sql/row-format.ts'
import { enqueueSql, EVENTS } from '../sql/webhooks.ts'
import { type Database, runWithRetry } from './database.ts'
import type { Revisions } from './revisions.ts'

export const DIALECT: Dialect = {
  now: ':now',
  elements: (parameter) => `json_each(${parameter})`,
  least: 'min',
  greatest: 'max',
  forUpdate: '',
  guarded: 'true',
  skipLocked: '',
  last: (column, characters) => `substr(${column}, -${characters})`,
  indexed: (column) => column,
  forEach: (values, sql) => values.map((value) => sql(`'${value}'`)).join(' UNION ALL '),
  // The inner query reads an index only.
  selectKeys: (columns, page) => `
    SELECT ${columns} FROM (SELECT created_at AS page_at, id AS page_id FROM ${page}) AS page
    CROSS JOIN partner_key ON id = page_id ORDER BY page_at, page_id`,
  derived: () => ({}),
  // The store itself has no triggers or views.
  intruders: ["SELECT name FROM sqlite_schema WHERE type IN ('trigger', 'view')"],
}

export type SyncQuery = <R extends readonly Value[] = StoredRow>(
  sql: string,
  parameters?: readonly Value[],
) => R[]

/** Runs statements of both databases, each of which is prepared once. */
export function createQuery(database: Pick<Database, 'statement'>): SyncQuery {
  // Not the date, which may jump and come back.
  const clock = createClock()
  const prepared = new Map<string, (parameters: readonly Value[]) => StoredRow[]>()

  function prepare(sql: string): (parameters: readonly Value[]) => StoredRow[] {
    const count = Math.max(0, ...Array.from(sql.matchAll(/\$(\d+)/g), ([, number]) => Number(number)))
    const text = sql.replaceAll('partner_api.', '').replace(/\$(\d+)/g, '?$1')
    const statement = database.statement<StoredRow>(text.replaceAll(':now', `?${count + 1}`))
    return text.includes(':now')
      ? (parameters) => statement.all(...parameters.slice(0, count), clock.now())
      : (parameters) => statement.all(...parameters.length > count ? parameters.slice(0, count) : parameters)
  }

  return <R extends readonly Value[]>(sql: string, parameters: readonly Value[] = []) => {
    let run = prepared.get(sql)
    if (run === undefined) prepared.set(sql, run = prepare(sql))
    return run(parameters) as readonly unknown[] as R[]
  }
}

export type SqliteDatabase = ReturnType<typeof createSqlDatabase>

export function createSqlDatabase(database: Database, revisions: Revisions) {
  const query = createQuery(database)
  const hasWebhooks = database.statement('SELECT 1 FROM webhook LIMIT 1')
  const enqueue = enqueueSql(DIALECT)
  const transactionWithRetry = <T>(work: () => T) =>
    runWithRetry(() => database.transaction(work, { wait: false }))
  /** All work is synchronous. */
  const runNow = <T>(work: Work<T>) => runWork(work, query) as T

  const writeUnsynced: SqlDatabase['write'] = (statements, parameters) =>
    // A sync of the disk would delay signups.
    runWithRetry(() =>
      database.unsynced(() => database.transaction(() => runAll(statements, parameters), { wait: false }))
    )

  function runAll(statements: readonly string[], parameters: readonly Value[]): StoredRow[] {
    return statements.map((sql) => query(sql, parameters)).at(-1)!
  }

  /** To be called in the transaction of the change, as `addEvents` is. */
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
    readCatalog: query,
    write: (statements, parameters, guard) =>
      transactionWithRetry(() => {
        const isGuarded = guard === undefined || query(`${guard} RETURNING 1`, parameters).length > 0
        return isGuarded ? runAll(statements, parameters) : []
      }),
    writeUnsynced,
    prune: (statements, parameters) => ignoreFailure(() => writeUnsynced(statements, parameters)),

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

    /** Without webhooks, the events are not made. */
    addEvents(events: () => readonly WebhookEvent[]): void {
      if (hasWebhooks.get() !== undefined) query(enqueue, [rowsText(EVENTS, events())])
    },
  } satisfies SqlDatabase & Record<string, unknown>
}
