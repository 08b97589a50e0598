/** The tables that a large import builds beside those of the store, and whose they are. */
import { StoreError } from '../store-error.ts'
import type { Database } from './database.ts'

/** What an import of profiles builds beside what is there. `long_word` only grows, and serves both. */
const tables = ['profile', 'rank_name', 'rank_newest', 'search_name', 'search_newest', 'tally']

/** An import whose last step is older than this has been killed. */
const claimTimeoutMs = 10_000

/** @throws {StoreError} `refused` while another process builds tables beside those of the store. */
export function assertNoImport(database: Database): void {
  const [id, at] = readImportClaim(database)
  if (id === null) return
  if (Math.abs(Date.now() - at!) < claimTimeoutMs) {
    throw new StoreError(
      'refused',
      'Another import into the store is under way, or was stopped a moment ago: nothing was changed. Try again in ' +
        `${claimTimeoutMs / 1000} seconds.`,
    )
  }
  dropBuildTables(database)
  releaseImportClaim(database)
}

/** Drops what an import that was killed has left. */
export function cleanUpAbandonedImport(database: Database): void {
  const [id, at] = readImportClaim(database)
  if (id === null || Math.abs(Date.now() - at!) < claimTimeoutMs) return
  database.transaction(() => assertNoImport(database))
}

/** Who builds tables, and when that was last heard of. */
export function readImportClaim(database: Database): [id: string | null, at: number | null] {
  return database.statement<[string | null, number | null]>('SELECT import_id, import_at FROM store').get()!
}

/** Ends a claim. */
export function releaseImportClaim(database: Database): void {
  database.exec('UPDATE store SET import_id = NULL, import_at = NULL')
}

/** The tables beside those of the store. */
export function listBuildTables(database: Database): string[] {
  const names = tables.flatMap((table) => [`next_${table}`, `old_${table}`])
  return database.statement<[string]>(
    'SELECT name FROM sqlite_schema WHERE name IN (SELECT value FROM json_each(?1))',
  ).all(JSON.stringify(names)).map(([name]) => name)
}

function dropBuildTables(database: Database): void {
  for (const table of listBuildTables(database)) database.exec(`DROP TABLE ${table}`)
}

/** Claims the building of tables, and makes them, empty. Their indexes are constraints, and are renamed with them. */
export function claimImport(database: Database, id: string): void {
  assertNoImport(database)
  const definition = database.statement<[string]>('SELECT sql FROM sqlite_schema WHERE name = ?1')
  for (const table of tables) {
    database.exec(definition.get(table)![0].replace(/TABLE\s+"?\w+"?/, `TABLE next_${table}`))
  }
  for (const order of ['name', 'newest']) setSegmentMerging(database, `next_search_${order}`, 0, 1999)
  database.statement('UPDATE store SET import_id = ?1, import_at = ?2').run(id, Date.now())
}

/** Puts what was built in the place of what was there. */
export function swapTables(database: Database): void {
  for (const table of tables) {
    database.exec(`
      ALTER TABLE ${table} RENAME TO old_${table};
      ALTER TABLE next_${table} RENAME TO ${table};`)
  }
}

/** When FTS5 merges segments by itself. It would do so for seconds. */
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
