import { fold } from '../../../core/lib/text.ts'
import type { ImportOptions, ProfileRecord } from '../../../core/ports/content.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import { createImportLog } from '../sql/content.ts'
import { randomHex } from '../sql/schema.ts'
import { type ProfileRow, PROFILES } from '../sql/tables.ts'
import { type SqliteDatabase, upsertSql } from './database.ts'
import { searchTerms } from './profile-table.ts'
import {
  addWords,
  buildCounters,
  buildRanks,
  clearBuild,
  copyProfiles,
  createRebuild,
  startImport,
  swapTables,
} from './rebuild.ts'
import type { Revisions } from './revisions.ts'
import type { LocalSqlDatabase } from './sql-database.ts'

/** A temporary table of the profiles to import, with their search terms and keys in the orders of the directory. */
function createStaging(database: SqliteDatabase) {
  database.exec(`
    PRAGMA main.cache_size = -98304;
    PRAGMA temp.cache_size = -32768;
    DROP TABLE IF EXISTS temp.staged;
    CREATE TEMP TABLE staged (
      id INTEGER PRIMARY KEY, slug TEXT UNIQUE, country TEXT, industry TEXT, published_at INTEGER, card TEXT, detail TEXT,
      search TEXT, name_key TEXT, recency INTEGER
    );
    CREATE INDEX temp.staged_name ON staged (name_key, slug) WHERE name_key IS NOT NULL;
    CREATE INDEX temp.staged_newest ON staged (recency, slug) WHERE recency IS NOT NULL;`)
  const findRow = (table: string) =>
    database.statement<ProfileRow>(`SELECT ${PROFILES.columns} FROM ${table} WHERE slug = ?1`)
  const findStored = findRow('main.profile')
  const findStaged = findRow('temp.staged')
  const upsert = database.statement(
    upsertSql('temp.staged', [...PROFILES.columns, 'search', 'name_key', 'recency']),
  )
  const count = database.statement<[number]>('SELECT count(*) FROM temp.staged')

  return {
    /** The row that a staged profile would replace. */
    find: (slug: string) => findStaged.get(slug) ?? findStored.get(slug),
    put(record: ProfileRecord, row: ProfileRow): void {
      const search = searchTerms(record)
      const isListed = search.includes(' ~')
      const nameKey = isListed ? fold(record.name) : null
      const recency = isListed ? -record.publishedAt! : null
      upsert.run(...row, search, nameKey, recency)
    },
    isEmpty: () => count.get()![0] === 0,
  }
}

/**
 * Imports any number of profiles without blocking others for long. Records are compared and staged in temporary
 * tables. Then all tables of profiles are rebuilt from the stored and the staged profiles, in steps that each hold
 * the write lock for a moment. The last step swaps the tables, and writes the audit entry and the revision. What a
 * killed process leaves behind is dropped by the next import, or when the store is opened.
 */
export function createBulkImport(
  database: SqliteDatabase,
  revisions: Revisions,
  sql: LocalSqlDatabase,
  { now, actor, progress }: ImportOptions,
) {
  const staging = createStaging(database)
  const revision = revisions.current().content
  const importLog = createImportLog('profiles', progress)

  function stage(record: ProfileRecord): void {
    const row = PROFILES.values(record)
    if (importLog.add(row, staging.find(record.slug))) staging.put(record, row)
  }

  function begin(id: string): void {
    database.transaction(() => {
      if (revisions.current().content !== revision) {
        throw new StoreError(
          'refused',
          'Content was changed while the lines were read: nothing was imported.',
        )
      }
      startImport(database, id)
    })
  }

  return {
    report: importLog.report,

    /** Takes the next records. Writes to a temporary database only, without a lock. */
    stage: (records: readonly ProfileRecord[]) => database.snapshot(() => records.forEach(stage)),

    /** Drops the temporary database. */
    close: () => database.exec('DROP TABLE IF EXISTS temp.staged; PRAGMA main.cache_size = -262144'),

    /** Writes the staged records. */
    async finish(): Promise<void> {
      if (staging.isEmpty()) return
      const rebuild = createRebuild(database, randomHex(8))
      try {
        begin(rebuild.id)
        await copyProfiles(rebuild, now)
        await addWords(rebuild)
        await buildRanks(rebuild, 'name', 'name_key', '')
        await buildRanks(rebuild, 'newest', 'recency', -Number.MAX_SAFE_INTEGER)
        buildCounters(rebuild)
        rebuild.step(() => {
          swapTables(database)
          sql.appendAudit(importLog.auditRecords(), { actor, at: now })
          revisions.bump('content')
        })
      } finally {
        await clearBuild(rebuild)
      }
    },
  }
}
