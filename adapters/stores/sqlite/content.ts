import type {
  ContentAdministration,
  ContentKind,
  ImportOptions,
  ImportReport,
  ProfileRecord,
} from '../../../core/ports/content.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import { createContentAdministration, createPlainTables, type RunContentChange } from '../sql/content.ts'
import type { StoredRow } from '../sql/row-format.ts'
import { CONTENT_TABLES } from '../sql/tables.ts'
import { createBulkImport } from './bulk-import.ts'
import type { SqliteDatabase } from './database.ts'
import { createProfileTable } from './profile-table.ts'
import { requireNoImport } from './rebuild.ts'
import type { Revisions } from './revisions.ts'
import type { LocalSqlDatabase } from './sql-database.ts'

/** Profiles per transaction: it holds the write lock for two seconds at most. */
const maxPerTransaction = 5000

export function createContent(
  database: SqliteDatabase,
  revisions: Revisions,
  sql: LocalSqlDatabase,
): ContentAdministration {
  const tables = { profiles: createProfileTable(database), ...createPlainTables(sql.dialect) }
  let isBulkImporting = false

  const change: RunContentChange = (context, dryRun, work) =>
    dryRun
      ? database.snapshot(() => sql.runNow(work(tables, false)).result)
      : sql.change('content', context, function* () {
        requireNoImport(database)
        return yield* work(tables, true)
      })

  const { importContent, removeContent } = createContentAdministration(change)

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
      if (bulk === undefined) return await importContent('profiles', batch, options)
      bulk.stage(batch)
      if (!options.dryRun) await bulk.finish()
      return bulk.report
    } finally {
      bulk?.close()
      if (bulk) isBulkImporting = false
    }
  }

  return {
    importContent: (kind, records, options) =>
      kind === 'profiles' && !(Array.isArray(records) && records.length <= maxPerTransaction)
        ? importProfiles(records as AsyncIterable<ProfileRecord>, options)
        : importContent(kind, records, options),
    *exportContent<K extends ContentKind>(kind: K) {
      // Read from one state of the file.
      const { name, columns, read } = CONTENT_TABLES[kind]
      const rows = database.iterate<StoredRow>(`SELECT ${columns} FROM ${name} ORDER BY ${columns[0]}`)
      for (const row of rows) yield read(row)
    },
    removeContent,
  }
}
