/** The tables that a bulk import builds beside those of the store, and the claim of the import that builds them. */
import { StoreError } from '../store-error.ts'
import type { Database } from './database.ts'

/** The tables that are rebuilt. `long_word` only grows, and belongs to old and new tables. */
const tables = ['profile', 'rank_name', 'rank_newest', 'search_name', 'search_newest', 'tally']

/** An import without a step for this long counts as dead. */
const claimTimeoutMs = 10_000

/** Drops the tables of a dead import. @throws {StoreError} `refused` while another import builds tables. */
export function assertNoImport(database: Database): void {
  const [id, at] = readImportClaim(database)
  if (id === null) return
  if (Math.abs(Date.now() - at!) < claimTimeoutMs) {
    throw new StoreError(
      'refused',
      'Another import into the store is under way, or was killed a moment ago: nothing was changed. Try again in ' +
        `${claimTimeoutMs / 1000} seconds.`,
    )
  }
  for (const table of listBuildTables(database)) database.exec(`DROP TABLE ${table}`)
  releaseImportClaim(database)
}

/** Drops the tables of a dead import, if there are any. */
export function cleanUpAbandonedImport(database: Database): void {
  const [id, at] = readImportClaim(database)
  if (id === null || Math.abs(Date.now() - at!) < claimTimeoutMs) return
  database.transaction(() => assertNoImport(database))
}

/** The id of the import that builds tables, and the time of its last step. */
export function readImportClaim(database: Database): [id: string | null, at: number | null] {
  return database.statement<[string | null, number | null]>('SELECT import_id, import_at FROM store').get()!
}

export function releaseImportClaim(database: Database): void {
  database.exec('UPDATE store SET import_id = NULL, import_at = NULL')
}

/** The existing tables beside those of the store. */
export function listBuildTables(database: Database): string[] {
  const names = tables.flatMap((table) => [`next_${table}`, `old_${table}`])
  return database.statement<[string]>(
    'SELECT name FROM sqlite_schema WHERE name IN (SELECT value FROM json_each(?1))',
  ).all(JSON.stringify(names)).map(([name]) => name)
}

/** Claims the import and creates its empty tables. Their indexes belong to constraints, and are renamed with them. */
export function claimImport(database: Database, id: string): void {
  assertNoImport(database)
  const definition = database.statement<[string]>('SELECT sql FROM sqlite_schema WHERE name = ?1')
  for (const table of tables) {
    database.exec(definition.get(table)![0].replace(/TABLE\s+"?\w+"?/, `TABLE next_${table}`))
  }
  for (const order of ['name', 'newest']) setSegmentMerging(database, `next_search_${order}`, 0, 1999)
  database.statement('UPDATE store SET import_id = ?1, import_at = ?2').run(id, Date.now())
}

export function swapTables(database: Database): void {
  for (const table of tables) {
    database.exec(`
      ALTER TABLE ${table} RENAME TO old_${table};
      ALTER TABLE next_${table} RENAME TO ${table};`)
  }
}

/** Configures when FTS5 merges segments by itself, which can take seconds. */
export function setSegmentMerging(
  database: Database,
  index: string,
  automerge: number,
  crisismerge: number,
): void {
  database.exec(`
    INSERT INTO ${index} (${index}, rank) VALUES ('automerge', ${automerge});
    INSERT INTO ${index} (${index}, rank) VALUES ('crisismerge', ${crisismerge});`)
}
