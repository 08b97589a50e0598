import { fold } from '../../../core/content/fold.ts'
import type { ProfileRecord } from '../../../core/content/records.ts'
import { cardText, detailText, readCard, readDetail } from '../record-text.ts'
import { searchText } from '../search-text.ts'
import type { Database } from './database.ts'
import { createRanks, type RankEntry } from './ranks.ts'
import type { Shelf } from './shelves.ts'

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

type KeptRow = [...ProfileRow, id: number, search: string]

/** A profile is kept once, as its record; its places in the orders and its terms follow from that. */
export function createProfileShelf(database: Database): Shelf<ProfileRecord> {
  const find = database.statement<KeptRow>(
    `SELECT ${PROFILE_COLUMNS}, id, search FROM profile WHERE slug = ?1`,
  )
  const write = database.statement(`
    INSERT INTO profile (${PROFILE_COLUMNS}, search, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT (slug) DO UPDATE SET country = excluded.country, industry = excluded.industry,
      published_at = excluded.published_at, card = excluded.card, detail = excluded.detail,
      search = excluded.search, updated_at = excluded.updated_at`)
  const erase = database.statement('DELETE FROM profile WHERE slug = ?1')
  const addWord = database.statement('INSERT OR IGNORE INTO long_word VALUES (?1)')
  const count = database.statement(`
    INSERT INTO tally VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (audience, country, industry) DO UPDATE SET listings = listings + excluded.listings`)
  const orders = { name: createRanks(database, 'name'), newest: createRanks(database, 'newest') }

  /** Takes profiles out of the counts and orders, or puts them there. */
  function list(rows: readonly KeptRow[], change: 'add' | 'remove'): void {
    const listed = rows.map((row) => ({ row, audiences: audiencesOf(row) })).filter(({ audiences }) =>
      audiences.length > 0
    )
    for (const { row: [, country, industry], audiences } of listed) {
      for (const audience of audiences) count.run(audience, country, industry, change === 'add' ? 1 : -1)
    }
    const entries = (keyOf: (row: KeptRow) => RankEntry['key']) =>
      listed.map(({ row }): RankEntry => ({ key: keyOf(row), slug: row[0], profile: row[6], search: row[7] }))
    orders.name[change](entries((row) => nameKey(row)))
    orders.newest[change](entries((row) => -row[3]!))
  }

  return {
    find(slug) {
      const row = find.get(slug)
      return row && textOf(row.slice(0, 6) as ProfileRow)
    },
    text: (record) => textOf(rowOf(record)),

    write(records, now) {
      const changed = records.map((record) => ({
        row: rowOf(record),
        before: find.get(record.slug),
        search: termsOf(record),
      }))
      // What lists don't see of a profile costs no index anything.
      const moved = changed.filter(({ row, before, search }) =>
        before?.[7] !== search || before[3] !== row[3] || nameKey(before) !== nameKey(row)
      )
      list(moved.flatMap(({ before }) => before === undefined ? [] : [before]), 'remove')
      for (const { row, search } of changed) write.run(...row, search, now)
      for (const word of new Set(moved.flatMap(({ search }) => longWords(search)))) addWord.run(word)
      list(moved.map(({ row: [slug] }) => find.get(slug)!), 'add')
    },

    *all() {
      for (
        const row of database.iterate<ProfileRow>(`SELECT ${PROFILE_COLUMNS} FROM profile ORDER BY slug`)
      ) {
        yield recordOf(row)
      }
    },

    neededBy: () => [],

    remove(slugs) {
      list(slugs.map((slug) => find.get(slug)).filter((row) => row !== undefined), 'remove')
      for (const slug of slugs) erase.run(slug)
    },
  }
}

export function rowOf(record: ProfileRecord): ProfileRow {
  const { slug, country, industry, publishedAt } = record
  return [slug, country, industry, publishedAt ?? null, cardText(record), detailText(record)]
}

/** Equal records have equal texts. JSON has no line breaks of its own, and the rest is of one line. */
export function textOf(row: ProfileRow): string {
  return row.join('\n')
}

function recordOf([slug, country, industry, publishedAt, card, detail]: ProfileRow): ProfileRecord {
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
export function termsOf(record: ProfileRecord): string {
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

function audiencesOf(row: KeptRow): readonly string[] {
  return Array.from(row[7].matchAll(/(?<= ~)\S*/g), ([audience]) => audience)
}

function nameKey(row: readonly [...ProfileRow, ...unknown[]]): string {
  return fold(readCard(row[4]).name)
}
