/** The new tables of profiles that a bulk import builds: who builds them, and the steps, in order. */
import { delay } from '../../../core/lib/promise.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import type { SqlValue } from '../sql/row-format.ts'
import type { SqliteDatabase } from './database.ts'
import { longWords } from './profile-table.ts'
import { MAX_LABEL } from './ranks.ts'

/** The aim for how long a step holds the write lock, and the time that others then have it. */
const stepMs = 100
const pauseMs = 15
/** Pages that FTS5 merges per step. */
const mergePagesPerStep = 100
/** Steps between two merges of segments: FTS5 allows 2,000 segments. */
const maxSegments = 1500

type Rebuild = ReturnType<typeof createRebuild>

/** @param id Marks the import as the one that runs. */
export function createRebuild(database: SqliteDatabase, id: string) {
  const heartbeat = database.statement('UPDATE store SET import_at = ?2 WHERE import_id = ?1')
  let rows = 500

  /** Runs one step, unless another import has taken this one for dead. */
  function step<T>(work: () => T): T {
    return database.transaction(() => {
      if (heartbeat.run(id, Date.now()) === 0) {
        throw new StoreError('refused', 'The import was stopped for too long, and another one has begun.')
      }
      return work()
    })
  }

  return {
    database,
    id,
    step,

    /** Repeats a step until it returns false, with as many rows as fit into its time. */
    async repeat(work: (rows: number) => boolean): Promise<void> {
      for (let more = true; more;) {
        const startedAt = performance.now()
        // A power failure before the swap loses only the import.
        more = database.unsynced(() => step(() => work(rows)))
        const factor = stepMs / (performance.now() - startedAt)
        rows = Math.round(Math.min(20_000, Math.max(500, rows * Math.min(2, Math.max(0.25, factor)))))
        await delay(pauseMs)
      }
    },
  }
}

/** Copies the stored profiles that are not replaced, and the staged ones, in the order of their slugs. */
export async function copyProfiles({ database, repeat }: Rebuild, now: number): Promise<void> {
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

/** Adds the long words of the staged profiles to `long_word`, which is not rebuilt. */
export async function addWords({ database, repeat }: Rebuild): Promise<void> {
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

/**
 * Builds an order of the directory, with labels at even distances.
 *
 * @param key The column of the staged profiles that the order sorts by.
 * @param first Precedes every key.
 */
export async function buildRanks(
  { database, step, repeat }: Rebuild,
  order: 'name' | 'newest',
  key: string,
  first: SqlValue,
): Promise<void> {
  const ranks = `next_rank_${order}`
  const index = `next_search_${order}`
  const [profiles] = database.statement<[number]>('SELECT count(*) FROM next_profile').get()!
  const gap = Math.floor(MAX_LABEL / (profiles + 1))
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
  const selectLast = database.statement<[label: number, key: SqlValue, slug: string]>(
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
    await mergeSegments(database, repeat, index)
  }
  step(() => setSegmentMerging(database, index, 4, 16))
}

/** Merges all segments of an index into one. */
async function mergeSegments(
  database: SqliteDatabase,
  repeat: Rebuild['repeat'],
  index: string,
): Promise<void> {
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

/** Counts the listings. The count itself takes no lock. */
export function buildCounters({ database, step }: Rebuild): void {
  database.exec(`
    DROP TABLE IF EXISTS temp.counted;
    CREATE TEMP TABLE counted AS
    SELECT a.value AS audience, p.country, p.industry, count(*) AS listings
    FROM next_profile p, json_each(ifnull(p.detail -> '$.visibleTo', '[""]')) a
    WHERE p.published_at IS NOT NULL GROUP BY 1, 2, 3`)
  step(() => database.exec('INSERT INTO next_tally SELECT * FROM temp.counted'))
  database.exec('DROP TABLE temp.counted')
}

/** Drops the tables that were not swapped in, or the old ones, and removes the mark of the import. */
export async function clearBuild({ database, id, step, repeat }: Rebuild): Promise<void> {
  if (readImportMark(database)[0] !== id) return
  for (const table of listBuildTables(database)) {
    await repeat(() => {
      database.exec(`DROP TABLE ${table}`)
      return false
    })
  }
  step(() => removeImportMark(database))
}

/** The tables that are rebuilt. `long_word` only grows, and belongs to old and new tables. */
const tables = ['profile', 'rank_name', 'rank_newest', 'search_name', 'search_newest', 'tally']

/** An import without a step for this long counts as dead. */
const importTimeoutMs = 10_000

/** Drops the tables of a dead import. @throws {StoreError} `refused` while another import builds tables. */
export function requireNoImport(database: SqliteDatabase): void {
  const [id, at] = readImportMark(database)
  if (id === null) return
  if (Math.abs(Date.now() - at!) < importTimeoutMs) {
    throw new StoreError(
      'refused',
      'Another import into the store is under way, or was killed a moment ago: nothing was changed. Try again in ' +
        `${importTimeoutMs / 1000} seconds.`,
    )
  }
  for (const table of listBuildTables(database)) database.exec(`DROP TABLE ${table}`)
  removeImportMark(database)
}

/** Drops the tables of an import whose last step is so long ago that its process must have ended. */
export function cleanUpAbandonedImport(database: SqliteDatabase): void {
  const [id, at] = readImportMark(database)
  if (id === null || Math.abs(Date.now() - at!) < importTimeoutMs) return
  database.transaction(() => requireNoImport(database))
}

/** The id of the import that builds tables, and the time of its last step. */
function readImportMark(database: SqliteDatabase): [id: string | null, at: number | null] {
  return database.statement<[string | null, number | null]>('SELECT import_id, import_at FROM store').get()!
}

function removeImportMark(database: SqliteDatabase): void {
  database.exec('UPDATE store SET import_id = NULL, import_at = NULL')
}

/** The existing tables beside those of the store. */
function listBuildTables(database: SqliteDatabase): string[] {
  const names = tables.flatMap((table) => [`next_${table}`, `old_${table}`])
  return database.statement<[string]>(
    'SELECT name FROM sqlite_schema WHERE name IN (SELECT value FROM json_each(?1))',
  ).all(JSON.stringify(names)).map(([name]) => name)
}

/**
 * Marks the import as the one that runs, and creates its empty tables. Their indexes belong to constraints,
 * and are renamed with them.
 */
export function startImport(database: SqliteDatabase, id: string): void {
  requireNoImport(database)
  const definition = database.statement<[string]>('SELECT sql FROM sqlite_schema WHERE name = ?1')
  for (const table of tables) {
    database.exec(definition.get(table)![0].replace(/TABLE\s+"?\w+"?/, `TABLE next_${table}`))
  }
  for (const order of ['name', 'newest']) setSegmentMerging(database, `next_search_${order}`, 0, 1999)
  database.statement('UPDATE store SET import_id = ?1, import_at = ?2').run(id, Date.now())
}

/** Renames the tables of an import to those of the store, which become `old_…`. Needs a transaction. */
export function swapTables(database: SqliteDatabase): void {
  for (const table of tables) {
    database.exec(`
      ALTER TABLE ${table} RENAME TO old_${table};
      ALTER TABLE next_${table} RENAME TO ${table};`)
  }
}

/** Configures when FTS5 merges segments by itself, which can take seconds. */
function setSegmentMerging(
  database: SqliteDatabase,
  index: string,
  automerge: number,
  crisismerge: number,
): void {
  database.exec(`
    INSERT INTO ${index} (${index}, rank) VALUES ('automerge', ${automerge});
    INSERT INTO ${index} (${index}, rank) VALUES ('crisismerge', ${crisismerge});`)
}
