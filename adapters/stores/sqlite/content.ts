import { andThen, type MaybePromise } from '../../../core/lib/promise.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import type {
  ContentKind,
  ContentRecords,
  ImportOptions,
  ImportReport,
  ProfileRecord,
} from '../../../core/ports/content.ts'
import { createImportAudit, removalAuditRecord } from '../audit-log.ts'
import { collect, RECORD_FORMATS } from '../content-text.ts'
import { StoreError } from '../store-error.ts'
import type { SqliteAuditLog } from './audit.ts'
import { assertNoImport } from './bulk-import-tables.ts'
import { type BulkImport, createBulkImport } from './bulk-import.ts'
import { createContentTables } from './content-tables.ts'
import type { Database } from './database.ts'
import type { Revisions } from './revisions.ts'

/** Profiles that one transaction writes: it holds the write lock for two seconds at most. */
const maxPerTransaction = 5000

/** `ContentAdministration` of the ports, synchronous but for imports of many profiles. */
export interface SqliteContentAdministration {
  importContent<K extends ContentKind>(
    kind: K,
    records: Iterable<ContentRecords[K]> | AsyncIterable<ContentRecords[K]>,
    options: ImportOptions,
  ): MaybePromise<ImportReport>
  exportContent<K extends ContentKind>(kind: K): Iterable<ContentRecords[K]>
  removeContent(
    kind: ContentKind,
    slugs: readonly string[],
    stamp: AuditContext,
  ): { missing: string[]; used: string[] }
}

export function createContentAdministration(
  database: Database,
  revisions: Revisions,
  auditLog: SqliteAuditLog,
): SqliteContentAdministration {
  const tables = createContentTables(database)

  let isBulkImporting = false

  function importInOneTransaction<K extends ContentKind>(
    kind: K,
    records: readonly ContentRecords[K][],
    { now, actor, dryRun = false, progress }: ImportOptions,
  ): ImportReport {
    const table = tables[kind]
    const { slug } = RECORD_FORMATS[kind]
    const write = () => {
      if (!dryRun) assertNoImport(database)
      const importAudit = createImportAudit()
      const report = { created: 0, replaced: 0, unchanged: 0 }
      const changed = new Map<string, { record: ContentRecords[K]; text: string }>()
      for (const [index, record] of records.entries()) {
        const text = table.text(record)
        const before = changed.get(slug(record))?.text ?? table.find(slug(record))
        report[before === undefined ? 'created' : before === text ? 'unchanged' : 'replaced']++
        if (before !== text) {
          importAudit.addChanged(slug(record))
          changed.set(slug(record), { record, text })
        }
        if ((index + 1) % 500 === 0) progress?.(index + 1)
      }
      const auditRecord = dryRun ? undefined : importAudit.toRecord(kind, report)
      if (auditRecord !== undefined) {
        table.write(Array.from(changed.values(), ({ record }) => record), now)
        auditLog.append([auditRecord], { actor, at: now })
        revisions.bump('content')
      }
      return report
    }
    return dryRun ? database.snapshot(write) : database.transaction(write)
  }

  async function importProfiles(
    records: Iterable<ProfileRecord> | AsyncIterable<ProfileRecord>,
    options: ImportOptions,
  ): Promise<ImportReport> {
    let bulk: BulkImport | undefined
    let batch: ProfileRecord[] = []
    try {
      for await (const record of records) {
        batch.push(record)
        if (batch.length <= maxPerTransaction) continue
        if (bulk === undefined) {
          if (isBulkImporting) throw new StoreError('refused', 'Another import into the store is under way.')
          isBulkImporting = true
          bulk = createBulkImport(database, revisions, auditLog, options)
        }
        bulk.stage(batch)
        batch = []
      }
      if (bulk === undefined) return importInOneTransaction('profiles', batch, options)
      bulk.stage(batch)
      const isNothingToWrite = options.dryRun || bulk.staged() === 0
      return isNothingToWrite ? bulk.report : await bulk.finish()
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

    exportContent: (kind) => tables[kind].all(),

    removeContent(kind, slugs, stamp) {
      return database.transaction(() => {
        assertNoImport(database)
        const table = tables[kind]
        const removed = new Set(slugs)
        const remains = (other: { kind: ContentKind; slug: string }) =>
          other.kind !== kind || !removed.has(other.slug)
        const missing = [...removed].filter((slug) => table.find(slug) === undefined)
        const used = [...removed].filter((slug) => table.referencedBy(slug).some(remains))
        if (removed.size > 0 && missing.length === 0 && used.length === 0) {
          table.remove([...removed])
          auditLog.append([removalAuditRecord(kind, removed)], stamp)
          revisions.bump('content')
        }
        return { missing, used }
      })
    },
  }
}
