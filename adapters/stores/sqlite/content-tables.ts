import { fold } from '../../../core/lib/text.ts'
import type { ContentKind, ContentRecords, ProfileRecord } from '../../../core/ports/content.ts'
import { cardText, detailText, readCard, readDetail, RECORD_FORMATS, searchText } from '../content-text.ts'
import type { Database } from './database.ts'
import { createRankIndex, type RankEntry } from './ranks.ts'

/** Where the records of one kind are kept. Writes belong in a transaction. */
export interface ContentTable<R> {
  /** The text of the record with this slug. */
  find(slug: string): string | undefined
  /** Equal records have equal texts. */
  text(record: R): string
  /** Creates or replaces records, each slug once. */
  write(records: readonly R[], now: number): void
  /** By slug. */
  all(): Iterable<R>
  /** Slugs of the records of any kind that need this one. */
  referencedBy(slug: string): readonly { readonly kind: ContentKind; readonly slug: string }[]
  remove(slugs: readonly string[]): void
}

/** The shelf of every kind. */
export type ContentTables = { readonly [K in ContentKind]: ContentTable<ContentRecords[K]> }

export function createContentTables(database: Database): ContentTables {
  return {
    profiles: createProfileTable(database),
    industries: createIndustryTable(database),
    plans: createTextTable(database, 'plans', 'plan', 'slug'),
    banners: createTextTable(database, 'banners', 'banner', 'partner', 'updated_at'),
  }
}

/** Plans and banners: no query looks into them, so they stay the text that they are. */
function createTextTable<K extends 'plans' | 'banners'>(
  database: Database,
  kind: K,
  table: string,
  primary: string,
  updated?: string,
): ContentTable<ContentRecords[K]> {
  const format = RECORD_FORMATS[kind]
  const selectRecord = database.statement<[record: string]>(
    `SELECT record FROM ${table} WHERE ${primary} = ?1`,
  )
  const upsertRecord = database.statement(
    updated === undefined
      ? `INSERT OR REPLACE INTO ${table} (${primary}, record) VALUES (?1, ?2)`
      : `INSERT OR REPLACE INTO ${table} (${primary}, record, ${updated}) VALUES (?1, ?2, ?3)`,
  )
  const deleteRecord = database.statement(`DELETE FROM ${table} WHERE ${primary} = ?1`)

  return {
    find: (slug) => selectRecord.get(slug)?.[0],
    text: format.text,
    write(records, now) {
      for (const record of records) {
        upsertRecord.run(format.slug(record), format.text(record), ...(updated === undefined ? [] : [now]))
      }
    },
    *all() {
      for (const [text] of database.iterate<[string]>(`SELECT record FROM ${table} ORDER BY ${primary}`)) {
        yield format.read(text)
      }
    },
    referencedBy: () => [],
    remove(slugs) {
      for (const slug of slugs) deleteRecord.run(slug)
    },
  }
}

function createIndustryTable(database: Database): ContentTable<ContentRecords['industries']> {
  const { text } = RECORD_FORMATS.industries
  const selectIndustry = database.statement<[name: string, parent: string | null]>(
    'SELECT name, parent_slug FROM industry WHERE slug = ?1',
  )
  // No REPLACE: it would delete the row that profiles refer to.
  const upsertIndustry = database.statement(`
    INSERT INTO industry (slug, name, parent_slug) VALUES (?1, ?2, ?3)
    ON CONFLICT (slug) DO UPDATE SET name = excluded.name, parent_slug = excluded.parent_slug`)
  const deleteIndustry = database.statement('DELETE FROM industry WHERE slug = ?1')
  const selectChildren = database.statement<[slug: string]>(
    'SELECT slug FROM industry WHERE parent_slug = ?1',
  )
  const selectProfile = database.statement<[slug: string]>(
    'SELECT slug FROM profile WHERE industry = ?1 LIMIT 1',
  )

  return {
    find(slug) {
      const row = selectIndustry.get(slug)
      return row && text({ slug, name: row[0], parentSlug: row[1] ?? undefined })
    },
    text,
    write(records) {
      for (const { slug, name, parentSlug } of records) upsertIndustry.run(slug, name, parentSlug ?? null)
    },
    *all() {
      const rows = database.iterate<[string, string, string | null]>(
        'SELECT slug, name, parent_slug FROM industry ORDER BY slug',
      )
      for (const [slug, name, parentSlug] of rows) yield { slug, name, parentSlug: parentSlug ?? undefined }
    },
    referencedBy: (referenced) => [
      ...selectChildren.all(referenced).map(([slug]) => ({ kind: 'industries' as const, slug })),
      ...selectProfile.all(referenced).map(([slug]) => ({ kind: 'profiles' as const, slug })),
    ],
    remove(slugs) {
      for (const slug of slugs) deleteIndustry.run(slug)
    },
  }
}

/** The columns of a profile that a record has; those that follow from it are `search` and its places in the orders. */
export type ProfileRow = [
  slug: string,
  country: string,
  industry: string,
  publishedAt: number | null,
  card: string,
  detail: string,
]

export const PROFILE_COLUMNS = 'slug, country, industry, published_at, card, detail'

type StoredProfileRow = [...ProfileRow, id: number, search: string]

/** A profile is kept once, as its record; its places in the orders and its terms follow from that. */
export function createProfileTable(database: Database): ContentTable<ProfileRecord> {
  const selectProfile = database.statement<StoredProfileRow>(
    `SELECT ${PROFILE_COLUMNS}, id, search FROM profile WHERE slug = ?1`,
  )
  const upsertProfile = database.statement(`
    INSERT INTO profile (${PROFILE_COLUMNS}, search, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT (slug) DO UPDATE SET country = excluded.country, industry = excluded.industry,
      published_at = excluded.published_at, card = excluded.card, detail = excluded.detail,
      search = excluded.search, updated_at = excluded.updated_at`)
  const deleteProfile = database.statement('DELETE FROM profile WHERE slug = ?1')
  const addWord = database.statement('INSERT OR IGNORE INTO long_word VALUES (?1)')
  const addToCounter = database.statement(`
    INSERT INTO tally VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (audience, country, industry) DO UPDATE SET listings = listings + excluded.listings`)
  const orders = { name: createRankIndex(database, 'name'), newest: createRankIndex(database, 'newest') }

  /** Takes profiles out of the counts and orders, or puts them there. */
  function updateListings(rows: readonly StoredProfileRow[], change: 'add' | 'remove'): void {
    const listed = rows.map((row) => ({ row, audiences: audiencesOf(row) })).filter(({ audiences }) =>
      audiences.length > 0
    )
    for (const { row: [, country, industry], audiences } of listed) {
      for (const audience of audiences) {
        addToCounter.run(audience, country, industry, change === 'add' ? 1 : -1)
      }
    }
    const entries = (keyOf: (row: StoredProfileRow) => RankEntry['key']) =>
      listed.map(({ row }): RankEntry => ({ key: keyOf(row), slug: row[0], profile: row[6], search: row[7] }))
    orders.name[change](entries((row) => nameKey(row)))
    orders.newest[change](entries((row) => -row[3]!))
  }

  return {
    find(slug) {
      const row = selectProfile.get(slug)
      return row && profileText(row.slice(0, 6) as ProfileRow)
    },
    text: (record) => profileText(toProfileRow(record)),

    write(records, now) {
      const changed = records.map((record) => ({
        row: toProfileRow(record),
        before: selectProfile.get(record.slug),
        search: searchTerms(record),
      }))
      // What lists don't see of a profile costs no index anything.
      const moved = changed.filter(({ row, before, search }) =>
        before?.[7] !== search || before[3] !== row[3] || nameKey(before) !== nameKey(row)
      )
      updateListings(moved.flatMap(({ before }) => before === undefined ? [] : [before]), 'remove')
      for (const { row, search } of changed) upsertProfile.run(...row, search, now)
      for (const word of new Set(moved.flatMap(({ search }) => longWords(search)))) addWord.run(word)
      updateListings(moved.map(({ row: [slug] }) => selectProfile.get(slug)!), 'add')
    },

    *all() {
      for (
        const row of database.iterate<ProfileRow>(`SELECT ${PROFILE_COLUMNS} FROM profile ORDER BY slug`)
      ) {
        yield readProfile(row)
      }
    },

    referencedBy: () => [],

    remove(slugs) {
      updateListings(
        slugs.map((slug) => selectProfile.get(slug)).filter((row) => row !== undefined),
        'remove',
      )
      for (const slug of slugs) deleteProfile.run(slug)
    },
  }
}

export function toProfileRow(record: ProfileRecord): ProfileRow {
  const { slug, country, industry, publishedAt } = record
  return [slug, country, industry, publishedAt ?? null, cardText(record), detailText(record)]
}

/** Equal records have equal texts. JSON has no line breaks of its own, and the rest is of one line. */
export function profileText(row: ProfileRow): string {
  return row.join('\n')
}

function readProfile([slug, country, industry, publishedAt, card, detail]: ProfileRow): ProfileRecord {
  return {
    slug,
    country,
    industry,
    publishedAt: publishedAt ?? undefined,
    ...readCard(card),
    ...readDetail(detail),
  }
}

/** The column `search` of a record: see migration 008. */
export function searchTerms(record: ProfileRecord): string {
  const { country, industry, publishedAt, visibleTo = [''] } = record
  const isListed = publishedAt !== undefined && visibleTo.length > 0
  const filters = isListed
    ? [...new Set(visibleTo)].map((audience) => ` ~${audience}`).join('') +
      ` =${country} @${industry} =${country}@${industry}`
    : ''
  return `${searchText(record)}${filters} `
}

/** The words of a column `search` that are longer than the prefixes that are indexed. */
export function longWords(search: string): string[] {
  return search.split(' ').filter((word) => word.length > 5 && /^[^~=@]/.test(word))
}

function audiencesOf(row: StoredProfileRow): readonly string[] {
  return Array.from(row[7].matchAll(/(?<= ~)\S*/g), ([audience]) => audience)
}

function nameKey(row: readonly [...ProfileRow, ...unknown[]]): string {
  return fold(readCard(row[4]).name)
}
