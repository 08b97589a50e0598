import { searchWords } from '../../../core/content/profile-index.ts'
import { andThen } from '../../../core/lib/promise.ts'
import { fold } from '../../../core/lib/text.ts'
import type {
  ContentAdministration,
  ContentKind,
  ContentRecords,
  ProfileRecord,
} from '../../../core/ports/content.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import {
  type ContentTable,
  createContentAdministration,
  createPlainTables,
  createTable,
} from '../sql/content.ts'
import { query, rowsSql, type SqlDatabase, type Work } from '../sql/database.ts'
import type { StoredRow } from '../sql/row-format.ts'
import { CONTENT_TABLES, PROFILES } from '../sql/tables.ts'
import type { PostgresDatabase } from './database.ts'
import { type CounterKey, createListingCounter, wordVector } from './listings.ts'
import { DIALECT, listText } from './sql.ts'

const plainTables = createPlainTables(DIALECT)
const profileTable = createTable(DIALECT, 'profiles')

export function createContent(
  database: PostgresDatabase,
  { change }: SqlDatabase,
): ContentAdministration {
  const { importContent, removeContent } = createContentAdministration((context, dryRun, work) =>
    change('content', context, function* () {
      const { result, auditRecords } = yield* work({ profiles: openProfileTable(), ...plainTables }, true)
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

const listingColumns = ['audience', 'country', 'industry', 'slug', 'name_key', 'recency', 'words']
const insertListingsSql = `
  INSERT INTO partner_api.listing (${listingColumns})
  SELECT ${listingColumns.with(-1, 'words::tsvector')} FROM ${rowsSql(DIALECT, listingColumns)} AS listed`

type ListingRow = [...CounterKey, slug: string, nameKey: string, recency: number, words: string]

/**
 * The table of profiles, for one transaction. A profile is stored once, as its record; its listings are derived
 * from it and written with it.
 */
export function openProfileTable(): ContentTable<ProfileRecord> {
  const counter = createListingCounter()

  function* deleteListings(slugs: readonly string[]): Work<void> {
    const deleted = yield* query<[audience: string, country: string, industry: string]>(
      'DELETE FROM partner_api.listing WHERE slug = ANY ($1::text[]) RETURNING audience, country, industry',
      [listText(slugs)],
    )
    for (const key of deleted) counter.add(key, -1)
  }

  function* insertListings(rows: readonly ListingRow[]): Work<void> {
    for (const [audience, country, industry] of rows) counter.add([audience, country, industry], 1)
    if (rows.length > 0) yield* query(insertListingsSql, [JSON.stringify(rows)])
  }

  return {
    ...profileTable,
    flush: counter.flush,

    *write(drafts, before) {
      yield* profileTable.write(drafts, before)
      // A change of members that no list shows leaves the listings alone.
      const changed = drafts.map(({ slug, record }) => {
        const row = before.get(slug)
        const old = row === undefined ? [] : toListings(PROFILES.read(row))
        return { slug, old, listings: toListings(record) }
      }).filter(({ old, listings }) => JSON.stringify(old) !== JSON.stringify(listings))
      const listed = changed.filter(({ old }) => old.length > 0).map(({ slug }) => slug)
      if (listed.length > 0) yield* deleteListings(listed)
      yield* insertListings(changed.flatMap(({ listings }) => listings))
    },

    *remove(slugs) {
      yield* deleteListings(slugs)
      yield* profileTable.remove(slugs)
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
 * Does at once what autovacuum does after a minute: until then the planner knows nothing of the imported profiles,
 * and may sort a million of them for one page. VACUUM enables index-only scans and merges the pending words into
 * their index. Errors are ignored: the user may lack the permission, a compatible server the command.
 */
async function refreshStatistics(database: PostgresDatabase): Promise<void> {
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
  database: PostgresDatabase,
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
      const message = `The store ${database.location} was lost while all of its ${kind} were read: try again.`
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
