import type { WebhookEvent, WebhookStore } from '../../../core/ports/webhooks.ts'
import type { StoredRow, Value } from '../row-format.ts'
import { createWebhookStore, enqueueSql, eventRowsSql, type WebhookDialect } from '../webhooks.ts'
import type { SqliteAuditLog } from './audit.ts'
import { clock, type Database, runWithRetry, type Statement, transactionWithRetry } from './database.ts'

const dialect: WebhookDialect = {
  now: '?1',
  rows: (parameter) => `json_each(${parameter})`,
  forUpdate: '',
  skipLocked: '',
}

export function createWebhooks(database: Database, auditLog: SqliteAuditLog) {
  const statements = new Map<string, Statement<StoredRow>>()
  const hasWebhooks = database.statement('SELECT 1 FROM webhook LIMIT 1')

  function query(sql: string, parameters: readonly Value[]): StoredRow[] {
    let statement = statements.get(sql)
    if (statement === undefined) {
      const numbered = sql.replace(/\$(\d+)/g, (_, number) => `?${Number(number) + 1}`)
      statement = database.statement<StoredRow>(numbered.replaceAll('partner_api.', ''))
      statements.set(sql, statement)
    }
    return statement.all(...(/[$?]/.test(sql) ? [clock.now(), ...parameters] : []))
  }

  const enqueue = enqueueSql(dialect, eventRowsSql(dialect))

  /** To be called in the transaction of the change. Without webhooks, the events are not made. */
  function addEvents(events: () => readonly WebhookEvent[]): void {
    if (hasWebhooks.get() !== undefined) query(enqueue, [JSON.stringify(events())])
  }

  const webhooks: WebhookStore = createWebhookStore(dialect, {
    read: query,
    write: (statements, parameters) =>
      transactionWithRetry(database, () => statements.map((sql) => query(sql, parameters)).at(-1)!),
    // A sync of the disk would delay signups.
    writeUnsynced: (statements, parameters) =>
      runWithRetry(() => {
        database.exec('PRAGMA synchronous = NORMAL')
        try {
          const run = () => statements.map((sql) => query(sql, parameters)).at(-1)!
          return database.transaction(run, { wait: false })
        } finally {
          database.exec('PRAGMA synchronous = FULL')
        }
      }),
    change: (context, work) =>
      transactionWithRetry(database, () => {
        const { result, auditRecords, events } = work(query) as Exclude<
          ReturnType<typeof work>,
          Promise<unknown>
        >
        auditLog.append(auditRecords, context)
        if (auditRecords.length > 0) addEvents(events)
        return result
      }),
  })

  return { webhooks, addEvents }
}

export type AddEvents = ReturnType<typeof createWebhooks>['addEvents']
