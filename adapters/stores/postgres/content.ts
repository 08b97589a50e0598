import type { ContentAdministration, ContentKind, ContentRecords } from '../../../core/ports/content.ts'
import { removalAuditRecord } from '../../../core/audit/records.ts'
import { createImportLog, toDrafts } from '../content-import.ts'
import { collect } from '../content-text.ts'
import type { StoredRow } from '../row-format.ts'
import { StoreError } from '../store-error.ts'
import { CONTENT_TABLES } from '../tables.ts'
import { runAudited } from './sql-database.ts'
import { CONTENT_TABLE_OPENERS, findReferenced } from './content-tables.ts'
import type { Database } from './database.ts'
import type { Revisions } from './revisions.ts'

export function createContentAdministration(
  database: Database,
  revisions: Revisions,
): ContentAdministration {
  return {
    async importContent(kind, source, { now, actor, dryRun = false, progress }) {
      const records = await collect(source)
      const report = await runAudited(database, revisions, 'content', { actor, at: now }, async (query) => {
        const table = CONTENT_TABLE_OPENERS[kind](query)
        const importLog = createImportLog(kind, progress)
        for (let start = 0; start < records.length; start += table.batchSize) {
          const drafts = toDrafts(kind, records.slice(start, start + table.batchSize), now)
          const stored = await table.find(drafts.map(({ slug }) => slug))
          await table.write(importLog.addAll(drafts, (slug) => stored.get(slug)), stored)
        }
        await table.flush()
        // A dry run writes everything and rolls it back: its report is exact.
        return { result: importLog.report, auditRecords: dryRun ? [] : importLog.auditRecords() }
      })
      if (!dryRun) await refreshStatistics(database, kind, report.created + report.replaced)
      return report
    },

    exportContent: (kind) => exportRecords(database, kind),

    removeContent(kind, slugs, stamp, dryRun = false) {
      return runAudited(database, revisions, 'content', stamp, async (query) => {
        const table = CONTENT_TABLE_OPENERS[kind](query)
        const removed = [...new Set(slugs)]
        if (removed.length === 0) return { result: { missing: [], used: [] }, auditRecords: [] }
        const existing = await table.find(removed)
        const referenced = kind === 'industries' ? await findReferenced(query, removed) : new Set()
        const missing = removed.filter((slug) => !existing.has(slug))
        const used = removed.filter((slug) => referenced.has(slug))
        if (dryRun || missing.length > 0 || used.length > 0) {
          return { result: { missing, used }, auditRecords: [] }
        }
        await table.remove(removed)
        await table.flush()
        return { result: { missing, used }, auditRecords: [removalAuditRecord(kind, removed)] }
      })
    },
  }
}

/** Number of imported records after which the query planner needs new statistics. */
const statisticsThreshold = 1000

/**
 * Does at once what autovacuum does after a minute: until then the planner knows nothing of the imported profiles, and may
 * sort a million of them for one page. VACUUM enables index-only scans and merges the pending words into their index.
 * Errors are ignored: the user may lack the permission, a compatible server the command.
 */
async function refreshStatistics(
  database: Database,
  kind: ContentKind,
  changed: number,
): Promise<void> {
  if (kind !== 'profiles' || changed < statisticsThreshold) return
  for (
    const command of [
      'ANALYZE partner_api.listing',
      'VACUUM partner_api.listing',
      'ANALYZE partner_api.profile',
    ]
  ) {
    await database.write(command).catch(() => undefined)
  }
}

const pageRows = 1000

/**
 * All records of a kind, by slug, in one snapshot: its transaction lasts until the last one is read or the generator is
 * closed. At most two pages are in memory.
 */
async function* exportRecords<K extends ContentKind>(
  database: Database,
  kind: K,
): AsyncGenerator<ContentRecords[K], void, undefined> {
  const { name, columns, read } = CONTENT_TABLES[kind]
  const [primary] = columns
  const select = `
    SELECT ${columns} FROM partner_api.${name} WHERE ${primary} > $1 ORDER BY ${primary} LIMIT ${pageRows}`
  const { readable, writable } = new TransformStream<StoredRow[], StoredRow[]>()
  const pages = writable.getWriter()
  let hasStarted = false

  const reading = database.transaction(async (query) => {
    if (hasStarted) {
      const message = `The store ${database.place} was lost while all of its ${kind} were read: try again.`
      throw new StoreError('unreachable', message)
    }
    for (let after = '', last = false; !last;) {
      const rows = await query<StoredRow>(select, [after])
      last = rows.length < pageRows
      after = String(rows.at(-1)?.[0] ?? '')
      hasStarted = true
      await pages.write(rows)
    }
  }, { readOnly: true }).then(() => pages.close(), (error) => pages.abort(error))
  // The reader of the pages gets the error.
  reading.catch(() => undefined)

  for await (const rows of readable) {
    for (const row of rows) yield read(row)
  }
}
