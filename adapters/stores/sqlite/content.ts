import { andThen, type MaybePromise } from '../../../core/lib/promise.ts'
import type {
  ContentAdministration,
  ContentKind,
  ContentRecords,
  ImportOptions,
  ImportReport,
  ProfileRecord,
} from '../../../core/ports/content.ts'
import { removalAuditRecord } from '../../../core/audit/records.ts'
import { createImportLog, toDrafts } from '../content-import.ts'
import { collect } from '../content-text.ts'
import { StoreError } from '../store-error.ts'
import { assertNoImport } from './rebuild.ts'
import { createBulkImport } from './bulk-import.ts'
import { createContentTables, exportRecords, findReferenced } from './content-tables.ts'
import type { Database } from './database.ts'
import type { Revisions } from './revisions.ts'
import type { SqliteDatabase } from './sql-database.ts'

/** Profiles per transaction: it holds the write lock for two seconds at most. */
const maxPerTransaction = 5000

export function createContentAdministration(
  database: Database,
  revisions: Revisions,
  sql: Pick<SqliteDatabase, 'appendAudit'>,
) {
  const tables = createContentTables(database)
  let isBulkImporting = false

  function importInOneTransaction<K extends ContentKind>(
    kind: K,
    records: readonly ContentRecords[K][],
    { now, actor, dryRun = false, progress }: ImportOptions,
  ): ImportReport {
    const write = () => {
      if (!dryRun) assertNoImport(database)
      const importLog = createImportLog(kind, progress)
      const changed = importLog.addAll(toDrafts(kind, records, now), tables[kind].find)
      if (!dryRun && changed.length > 0) {
        tables[kind].write(changed)
        sql.appendAudit(importLog.auditRecords(), { actor, at: now })
        revisions.bump('content')
      }
      return importLog.report
    }
    return dryRun ? database.snapshot(write) : database.transaction(write)
  }

  async function importProfiles(
    records: Iterable<ProfileRecord> | AsyncIterable<ProfileRecord>,
    options: ImportOptions,
  ): Promise<ImportReport> {
    let bulk: ReturnType<typeof createBulkImport> | undefined
    let batch: ProfileRecord[] = []
    try {
      for await (const record of records) {
        batch.push(record)
        if (batch.length <= maxPerTransaction) continue
        if (bulk === undefined) {
          if (isBulkImporting) throw new StoreError('refused', 'Another import into the store is under way.')
          isBulkImporting = true
          bulk = createBulkImport(database, revisions, sql, options)
        }
        bulk.stage(batch)
        batch = []
      }
      if (bulk === undefined) return importInOneTransaction('profiles', batch, options)
      bulk.stage(batch)
      if (!options.dryRun) await bulk.finish()
      return bulk.report
    } finally {
      bulk?.close()
      if (bulk) isBulkImporting = false
    }
  }

  return {
    importContent<K extends ContentKind>(
      kind: K,
      records: Iterable<ContentRecords[K]> | AsyncIterable<ContentRecords[K]>,
      options: ImportOptions,
    ): MaybePromise<ImportReport> {
      if (kind === 'profiles' && !(Array.isArray(records) && records.length <= maxPerTransaction)) {
        return importProfiles(records as AsyncIterable<ProfileRecord>, options)
      }
      return andThen(collect(records), (all) => importInOneTransaction(kind, all, options))
    },

    exportContent: (kind) => exportRecords(database, kind),

    removeContent(kind, slugs, context, dryRun = false) {
      return database.transaction(() => {
        assertNoImport(database)
        const removed = [...new Set(slugs)]
        const missing = removed.filter((slug) => tables[kind].find(slug) === undefined)
        const used = kind === 'industries' ? findReferenced(database, removed) : []
        if (!dryRun && removed.length > 0 && missing.length === 0 && used.length === 0) {
          tables[kind].remove(removed)
          sql.appendAudit([removalAuditRecord(kind, removed)], context)
          revisions.bump('content')
        }
        return { missing, used }
      })
    },
  } satisfies ContentAdministration
}
