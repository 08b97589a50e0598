import { searchWords } from '../../../core/content/profile-index.ts'
import { fold } from '../../../core/lib/text.ts'
import type { ContentKind, ContentRecords, ProfileRecord } from '../../../core/ports/content.ts'
import type { Draft } from '../content-import.ts'
import type { StoredRow } from '../row-format.ts'
import { CONTENT_TABLES, PROFILES } from '../tables.ts'
import type { Query } from './connection.ts'
import { type CounterKey, createListingCounter, wordVector } from './listings.ts'
import { columnParameters, listText, upsertSql } from './sql.ts'

/** The table of one kind of content in one transaction. */
export interface ContentTable<R> {
  /** Records per statement, at most. */
  readonly batchSize: number
  /** The rows of the records with these slugs, by slug. */
  find(slugs: readonly string[]): Promise<Map<string, StoredRow>>
  /** Creates or replaces records, each slug once. @param before What `find` returned for their slugs. */
  write(drafts: readonly Draft<R>[], before: ReadonlyMap<string, StoredRow>): Promise<void>
  remove(slugs: readonly string[]): Promise<void>
  /** Writes what the calls before have gathered. */
  flush(): Promise<void>
}

/** Open the tables in a transaction. */
export const CONTENT_TABLE_OPENERS: {
  readonly [K in ContentKind]: (query: Query) => ContentTable<ContentRecords[K]>
} = {
  profiles: openProfileTable,
  // In one statement: foreign keys are checked at its end, and parents may come after children.
  industries: (query) => ({ ...openPlainTable(query, 'industries'), batchSize: Infinity }),
  plans: (query) => openPlainTable(query, 'plans'),
  banners: (query) => openPlainTable(query, 'banners'),
}

/** A table that nothing else follows from. */
function openPlainTable<K extends ContentKind>(query: Query, kind: K): ContentTable<ContentRecords[K]> {
  const { name, columns, isDated } = CONTENT_TABLES[kind]
  const selected = `FROM partner_api.${name} WHERE ${columns[0]} = ANY ($1::text[])`
  const upsert = upsertSql(name, isDated ? [...columns, 'updated_at'] : columns)

  return {
    batchSize: 500,
    async find(slugs) {
      const rows = await query<StoredRow>(`SELECT ${columns} ${selected}`, [listText(slugs)])
      return new Map(rows.map((row) => [String(row[0]), row]))
    },
    async write(drafts) {
      if (drafts.length === 0) return
      const rows = drafts.map(({ row, updatedAt }) => isDated ? [...row, updatedAt] : row)
      await query(upsert, columnParameters(rows))
    },
    async remove(slugs) {
      await query(`DELETE ${selected}`, [listText(slugs)])
    },
    flush: () => Promise.resolve(),
  }
}

/** Industries among `slugs` that profiles, or industries not among `slugs`, refer to. */
export async function findReferenced(query: Query, slugs: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await query<[slug: string]>(
    `SELECT needed.slug FROM unnest($1::text[]) AS needed (slug)
    WHERE EXISTS (SELECT 1 FROM partner_api.profile p WHERE p.industry = needed.slug)
      OR EXISTS (
        SELECT 1 FROM partner_api.industry i
        WHERE i.parent_slug = needed.slug AND i.slug <> ALL ($1::text[])
      )`,
    [listText(slugs)],
  )
  return new Set(rows.map(([slug]) => slug))
}

type ListingRow = [...CounterKey, slug: string, nameKey: string, recency: number, words: string]

/** A profile is stored once, as its record; its listings follow from that and are written with it. */
export function openProfileTable(query: Query): ContentTable<ProfileRecord> {
  const base = openPlainTable(query, 'profiles')
  const counter = createListingCounter()

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

    flush: () => counter.flush(query),
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
