import { searchWords } from '../../../core/content/profile-index.ts'
import { andThen } from '../../../core/lib/promise.ts'
import { fold } from '../../../core/lib/text.ts'
import type {
  ContentAdministration,
  ContentKind,
  ContentRecords,
  ProfileRecord,
} from '../../../core/ports/content.ts'
import { type ContentTable, type ContentTables, createContentAdministration } from '../content.ts'
import type { StoredRow } from '../row-format.ts'
import { openPlainTables, openTable } from '../sql/content.ts'
import { StoreError } from '../store-error.ts'
import { CONTENT_TABLES, PROFILES } from '../tables.ts'
import type { Query } from './connection.ts'
import type { Database } from './database.ts'
import { type CounterKey, createListingCounter, wordVector } from './listings.ts'
import type { Revisions } from './revisions.ts'
import { runAudited } from './sql-database.ts'
import { columnParameters, DIALECT, listText } from './sql.ts'

export function createContent(database: Database, revisions: Revisions): ContentAdministration {
  const { importContent, removeContent } = createContentAdministration((context, dryRun, work) =>
    runAudited(database, revisions, 'content', context, async (query) => {
      const tables = openContentTables(query)
      const { result, auditRecords } = await work(tables, true)
      await tables.flush()
      return { result, auditRecords: dryRun ? [] : auditRecords }
    })
  )

  return {
    importContent: (kind, records, options) =>
      andThen(importContent(kind, records, options), async (report) => {
        const changed = report.created + report.replaced
        if (!options.dryRun && kind === 'profiles' && changed >= statisticsThreshold) {
          await refreshStatistics(database)
        }
        return report
      }),
    exportContent: (kind) => exportRecords(database, kind),
    removeContent,
  }
}

/** The tables in a transaction. `flush` has to be called at its end. */
export function openContentTables(query: Query): ContentTables & { readonly flush: () => Promise<void> } {
  const counter = createListingCounter()
  return {
    profiles: openProfileTable(query, counter),
    ...openPlainTables(DIALECT, query),
    flush: () => counter.flush(query),
  }
}

type ListingRow = [...CounterKey, slug: string, nameKey: string, recency: number, words: string]

/** A profile is stored once, as its record; its listings follow from that and are written with it. */
function openProfileTable(
  query: Query,
  counter: ReturnType<typeof createListingCounter>,
): ContentTable<ProfileRecord> {
  const base = openTable(DIALECT, query, 'profiles')

  async function deleteListings(slugs: readonly string[]): Promise<void> {
    const deleted = await query<[...CounterKey]>(
      'DELETE FROM partner_api.listing WHERE slug = ANY ($1::text[]) RETURNING audience, country, industry',
      [listText(slugs)],
    )
    for (const key of deleted) counter.add(key, -1)
  }

  async function insertListings(rows: readonly ListingRow[]): Promise<void> {
    for (const [audience, country, industry] of rows) counter.add([audience, country, industry], 1)
    if (rows.length === 0) return
    await query(
      `INSERT INTO partner_api.listing (audience, country, industry, slug, name_key, recency, words)
      SELECT audience, country, industry, slug, name_key, recency, words::tsvector
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[])
        AS listed (audience, country, industry, slug, name_key, recency, words)`,
      columnParameters(rows),
    )
  }

  return {
    ...base,

    async write(drafts, before) {
      await base.write(drafts, before)
      // A change of members that no list shows leaves the listings alone.
      const changed = drafts.map(({ slug, record }) => {
        const row = before.get(slug)
        const [old, listings] = [row === undefined ? [] : toListings(PROFILES.read(row)), toListings(record)]
        return { slug, old, listings }
      }).filter(({ old, listings }) => JSON.stringify(old) !== JSON.stringify(listings))
      const listed = changed.filter(({ old }) => old.length > 0).map(({ slug }) => slug)
      if (listed.length > 0) await deleteListings(listed)
      await insertListings(changed.flatMap(({ listings }) => listings))
    },

    async remove(slugs) {
      await deleteListings(slugs)
      await base.remove(slugs)
    },
  }
}

function toListings(record: ProfileRecord): ListingRow[] {
  const { slug, country, industry, publishedAt } = record
  if (publishedAt === undefined) return []
  const nameKey = fold(record.name)
  const words = wordVector(searchWords(record))
  return Array.from(
    new Set(record.visibleTo ?? ['']),
    (audience) => [audience, country, industry, slug, nameKey, -publishedAt, words],
  )
}

/** Number of imported records after which the query planner needs new statistics. */
const statisticsThreshold = 1000

/**
 * Does at once what autovacuum does after a minute: until then the planner knows nothing of the imported profiles, and may
 * sort a million of them for one page. VACUUM enables index-only scans and merges the pending words into their index.
 * Errors are ignored: the user may lack the permission, a compatible server the command.
 */
async function refreshStatistics(database: Database): Promise<void> {
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
