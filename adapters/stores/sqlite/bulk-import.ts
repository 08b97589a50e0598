import { fold } from '../../../core/lib/text.ts'
import type { ImportOptions, ProfileRecord } from '../../../core/ports/content.ts'
import { createImportLog } from '../audit-log.ts'
import type { Value } from '../row-format.ts'
import { randomHex } from '../settings.ts'
import { StoreError } from '../store-error.ts'
import { type ProfileRow, PROFILES } from '../tables.ts'
import type { SqliteAuditLog } from './audit.ts'
import {
  claimImport,
  listBuildTables,
  readImportClaim,
  releaseImportClaim,
  setSegmentMerging,
  swapTables,
} from './bulk-import-tables.ts'
import { longWords, searchTerms } from './content-tables.ts'
import type { Database } from './database.ts'
import { MAX_LABEL } from './ranks.ts'
import type { Revisions } from './revisions.ts'

/** How long a step holds the write lock, about, and how long others then have it to themselves. */
const stepMs = 100
const pauseMs = 15
/** Pages that FTS5 merges in a step. */
const mergePagesPerStep = 100
/** Steps after which segments are merged: FTS5 has room for 2,000. */
const maxSegments = 1500

/**
 * Imports profiles without shutting others out for long. Records are compared and staged in temporary tables. Then all
 * tables of profiles are built anew, from what is there and what is staged, in steps that each hold the write lock for a
 * moment; a last one swaps them, with the audit entry and the revision. Whatever is left beside them by a process that was
 * killed is dropped by the next import, or when the store is opened.
 */
export function createBulkImport(
  database: Database,
  revisions: Revisions,
  auditLog: SqliteAuditLog,
  { now, actor, progress }: ImportOptions,
) {
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
  const [findStored, findStaged] = [findRow('main.profile'), findRow('temp.staged')]
  const stageRow = database.statement(`
    INSERT INTO temp.staged (${PROFILES.columns}, search, name_key, recency) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
    ON CONFLICT (slug) DO UPDATE SET country = excluded.country, industry = excluded.industry,
      published_at = excluded.published_at, card = excluded.card, detail = excluded.detail,
      search = excluded.search, name_key = excluded.name_key, recency = excluded.recency`)
  const countStaged = database.statement<[number]>('SELECT count(*) FROM temp.staged')
  const content = revisions.current().content
  const importLog = createImportLog('profiles', progress)

  function stage(record: ProfileRecord): void {
    const row = PROFILES.values(record)
    if (!importLog.add(row, findStaged.get(record.slug) ?? findStored.get(record.slug))) return
    const search = searchTerms(record)
    const isListed = search.includes(' ~')
    stageRow.run(...row, search, isListed ? fold(record.name) : null, isListed ? -record.publishedAt! : null)
  }

  return {
    report: importLog.report,

    /** Takes the next records. Writes to a temporary database only, without a lock. */
    stage: (records: readonly ProfileRecord[]) => database.snapshot(() => records.forEach(stage)),

    /** Drops the temporary database. */
    close: () => database.exec('DROP TABLE IF EXISTS temp.staged; PRAGMA main.cache_size = -262144'),

    /** Writes the staged records. */
    async finish(): Promise<void> {
      if (countStaged.get()![0] === 0) return
      const rebuild = createRebuild(database, revisions, content, now)
      try {
        await rebuild.run()
        rebuild.step(() => {
          swapTables(database)
          auditLog.append(importLog.auditRecords(), { actor, at: now })
          revisions.bump('content')
        })
      } finally {
        await rebuild.clear()
      }
    },
  }
}

function createRebuild(database: Database, revisions: Revisions, content: string, now: number) {
  const id = randomHex(8)
  const heartbeat = database.statement('UPDATE store SET import_at = ?2 WHERE import_id = ?1')
  let rows = 500

  /** Runs a part of the work, unless another import has taken this one for abandoned. */
  function step<T>(work: () => T): T {
    return database.transaction(() => {
      if (heartbeat.run(id, Date.now()) === 0) {
        throw new StoreError('refused', 'The import was stopped for too long, and another one has begun.')
      }
      return work()
    })
  }

  /** The disk is waited for when the tables are swapped, and not after every step. */
  function unsyncedStep<T>(work: () => T): T {
    database.exec('PRAGMA synchronous = NORMAL')
    try {
      return step(work)
    } finally {
      database.exec('PRAGMA synchronous = FULL')
    }
  }

  /** Repeats a step for as long as there is more to do, with as many rows as it has time for. */
  async function repeat(work: (rows: number) => boolean): Promise<void> {
    for (let more = true; more;) {
      const startedAt = performance.now()
      more = unsyncedStep(() => work(rows))
      const factor = stepMs / (performance.now() - startedAt)
      rows = Math.round(Math.min(20_000, Math.max(500, rows * Math.min(2, Math.max(0.25, factor)))))
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  function begin(): void {
    database.transaction(() => {
      if (revisions.current().content !== content) {
        throw new StoreError(
          'refused',
          'Content was changed while the lines were read: nothing was imported.',
        )
      }
      claimImport(database, id)
    })
  }

  async function copyProfiles(): Promise<void> {
    const columns = 'country, industry, published_at'
    const copy = database.statement(`
      INSERT INTO next_profile (slug, ${columns}, updated_at, card, search, detail)
      SELECT slug, ${columns}, updated_at, card, search, detail FROM main.profile p
      WHERE slug > ?1 AND NOT EXISTS (SELECT 1 FROM temp.staged s WHERE s.slug = p.slug)
      UNION ALL
      SELECT slug, ${columns}, CAST(?2 AS INTEGER), card, search, detail FROM temp.staged WHERE slug > ?1
      ORDER BY slug LIMIT ?3 + 0`)
    const selectLast = database.statement<[string]>('SELECT slug FROM next_profile ORDER BY id DESC LIMIT 1')
    await repeat((rows) => copy.run(selectLast.get()?.[0] ?? '', now, rows) === rows)
  }

  async function addWords(): Promise<void> {
    const texts = database.statement<[id: number, search: string]>(
      'SELECT id, search FROM temp.staged WHERE id > ?1 ORDER BY id LIMIT ?2 + 0',
    )
    const add = database.statement('INSERT OR IGNORE INTO long_word VALUES (?1)')
    let after = 0
    await repeat((rows) => {
      const batch = texts.all(after, rows)
      for (const word of new Set(batch.flatMap(([, search]) => longWords(search)))) add.run(word)
      after = batch.at(-1)?.[0] ?? after
      return batch.length === rows
    })
  }

  async function buildRanks(order: 'name' | 'newest', key: string, first: Value): Promise<void> {
    const [ranks, index] = [`next_rank_${order}`, `next_search_${order}`]
    const gap = Math.floor(
      MAX_LABEL / (database.statement<[number]>('SELECT count(*) FROM next_profile').get()![0] + 1),
    )
    const insertRanks = database.statement(`
      INSERT INTO ${ranks} (label, key, slug, profile)
      SELECT CAST(?3 + ?4 * row_number() OVER (ORDER BY f.key, f.slug) AS INTEGER), f.key, f.slug, p.id FROM (
        SELECT key, slug FROM main.rank_${order} r
        WHERE (key, slug) > (?1, ?2) AND NOT EXISTS (SELECT 1 FROM temp.staged s WHERE s.slug = r.slug)
        UNION ALL
        SELECT ${key}, slug FROM temp.staged WHERE (${key}, slug) > (?1, ?2) AND ${key} IS NOT NULL
        ORDER BY 1, 2 LIMIT ?5 + 0
      ) f CROSS JOIN next_profile p ON p.slug = f.slug`)
    const insertTerms = database.statement(`
      INSERT INTO ${index} (rowid, words)
      SELECT r.label, p.search || printf('#%04x', r.label >> 16)
      FROM ${ranks} r CROSS JOIN next_profile p ON p.id = r.profile WHERE r.label > ?1 ORDER BY r.label`)
    const selectLast = database.statement<[label: number, key: Value, slug: string]>(
      `SELECT label, key, slug FROM ${ranks} ORDER BY label DESC LIMIT 1`,
    )
    for (let more = true; more;) {
      let steps = 0
      await repeat((rows) => {
        const [label, key, slug] = selectLast.get() ?? [0, first, '']
        more = insertRanks.run(key, slug, label, gap, rows) === rows
        insertTerms.run(label)
        return more && ++steps < maxSegments
      })
      await mergeSegments(index)
    }
    step(() => setSegmentMerging(database, index, 4, 16))
  }

  /** Makes one segment of all. */
  async function mergeSegments(index: string): Promise<void> {
    const merge = database.statement(`INSERT INTO ${index} (${index}, rank) VALUES ('merge', ?1)`)
    const changes = database.statement<[number]>('SELECT total_changes()')
    let pages = -mergePagesPerStep
    await repeat(() => {
      const before = changes.get()![0]
      merge.run(pages)
      pages = mergePagesPerStep
      return changes.get()![0] - before > 1
    })
  }

  function buildCounters(): void {
    // Counted before the lock is taken.
    database.exec(`
      DROP TABLE IF EXISTS temp.counted;
      CREATE TEMP TABLE counted AS
      SELECT a.value AS audience, p.country, p.industry, count(*) AS listings
      FROM next_profile p, json_each(ifnull(p.detail -> '$.visibleTo', '[""]')) a
      WHERE p.published_at IS NOT NULL GROUP BY 1, 2, 3`)
    step(() => database.exec('INSERT INTO next_tally SELECT * FROM temp.counted'))
    database.exec('DROP TABLE temp.counted')
  }

  return {
    step,

    async run() {
      begin()
      await copyProfiles()
      await addWords()
      await buildRanks('name', 'name_key', '')
      await buildRanks('newest', 'recency', -Number.MAX_SAFE_INTEGER)
      buildCounters()
    },

    /** Drops what is beside the tables of the store, new or old. */
    async clear() {
      if (readImportClaim(database)[0] !== id) return
      for (const table of listBuildTables(database)) {
        await repeat(() => {
          database.exec(`DROP TABLE ${table}`)
          return false
        })
      }
      step(() => releaseImportClaim(database))
    },
  }
}
