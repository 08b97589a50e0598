import type { WebhookStore } from '../../../core/ports/webhooks.ts'
import { createWebhookStore, type WebhookDatabase } from '../webhooks.ts'
import { runAudited } from './audited-change.ts'
import type { Database } from './database.ts'
import type { Revisions } from './revisions.ts'
import { WEBHOOK_DIALECT } from './sql.ts'

export function createWebhooks(database: Database, revisions: Revisions): WebhookStore {
  const write: WebhookDatabase['write'] = (statements, parameters) => {
    const parts = statements.slice(0, -1).map((sql, index) => `part${index} AS (${sql} RETURNING 1)`)
    return database.write((parts.length > 0 ? `WITH ${parts} ` : '') + statements.at(-1), parameters)
  }
  return createWebhookStore(WEBHOOK_DIALECT, {
    read: database.read,
    write,
    // Commits of one moment share a sync.
    writeUnsynced: write,
    change: (context, work) =>
      runAudited(database, revisions, 'facts', context, async (query) => ({
        ...await work(query),
        keepsRevision: true,
      })),
  })
}
