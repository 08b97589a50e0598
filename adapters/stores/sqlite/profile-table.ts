import { searchText } from '../../../core/content/profile-index.ts'
import { fold } from '../../../core/lib/text.ts'
import type { ProfileRecord } from '../../../core/ports/content.ts'
import type { ContentTable } from '../sql/content.ts'
import { done } from '../sql/database.ts'
import { type ProfileRow, PROFILES } from '../sql/tables.ts'
import { type SqliteDatabase, upsertSql } from './database.ts'
import { createRankIndex, type RankEntry } from './ranks.ts'

type StoredProfileRow = [...ProfileRow, id: number, search: string]

/** A profile is stored once, as its record; its places in the orders and its search terms follow from that. */
export function createProfileTable(database: SqliteDatabase): ContentTable<ProfileRecord> {
  const selectProfile = database.statement<StoredProfileRow>(
    `SELECT ${PROFILES.columns}, id, search FROM profile WHERE slug = ?1`,
  )
  const upsertProfile = database.statement(
    upsertSql('profile', [...PROFILES.columns, 'search', 'updated_at']),
  )
  const deleteProfile = database.statement('DELETE FROM profile WHERE slug = ?1')
  const addWord = database.statement('INSERT OR IGNORE INTO long_word VALUES (?1)')
  const addToCounter = database.statement(`
    INSERT INTO tally VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (audience, country, industry) DO UPDATE SET listings = listings + excluded.listings`)
  const orders = { name: createRankIndex(database, 'name'), newest: createRankIndex(database, 'newest') }

  /** Adds profiles to the counters and orders, or removes them. */
  function updateListings(rows: readonly StoredProfileRow[], change: 'add' | 'remove'): void {
    const listed = rows.map((row) => ({ row, audiences: audiencesOf(row) }))
      .filter(({ audiences }) => audiences.length > 0)
    for (const { row: [, country, industry], audiences } of listed) {
      for (const audience of audiences) {
        addToCounter.run(audience, country, industry, change === 'add' ? 1 : -1)
      }
    }
    const entries = (keyOf: (row: StoredProfileRow) => RankEntry['key']) =>
      listed.map(({ row }): RankEntry => ({ key: keyOf(row), slug: row[0], profile: row[6], search: row[7] }))
    orders.name[change](entries(nameKey))
    orders.newest[change](entries((row) => -row[3]!))
  }

  return {
    batchSize: Infinity,
    find: (slugs) =>
      done(new Map(slugs.flatMap((slug) => selectProfile.all(slug)).map((row) => [row[0], row]))),

    write(drafts, stored) {
      const changes = drafts.map(({ slug, record, row, updatedAt }) => ({
        row: row as ProfileRow,
        updatedAt,
        before: stored.get(slug) as StoredProfileRow | undefined,
        search: searchTerms(record),
      }))
      // A change of members that no list shows leaves the indexes alone.
      const moved = changes.filter(({ row, before, search }) =>
        before?.[7] !== search || before[3] !== row[3] || nameKey(before) !== nameKey(row)
      )
      updateListings(moved.flatMap(({ before }) => before === undefined ? [] : [before]), 'remove')
      for (const { row, search, updatedAt } of changes) upsertProfile.run(...row, search, updatedAt)
      for (const word of new Set(moved.flatMap(({ search }) => longWords(search)))) addWord.run(word)
      updateListings(moved.map(({ row: [slug] }) => selectProfile.get(slug)!), 'add')
      return done(undefined)
    },

    remove(slugs) {
      updateListings(slugs.flatMap((slug) => selectProfile.all(slug)), 'remove')
      for (const slug of slugs) deleteProfile.run(slug)
      return done(undefined)
    },
  }
}

/** The column `search` of a record, which migrations/001-store.ts describes. */
export function searchTerms(record: ProfileRecord): string {
  const { country, industry, publishedAt, visibleTo = [''] } = record
  const isListed = publishedAt !== undefined && visibleTo.length > 0
  const filters = isListed
    ? [...new Set(visibleTo)].map((audience) => ` ~${audience}`).join('') +
      ` =${country} @${industry} =${country}@${industry}`
    : ''
  return `${searchText(record)}${filters} `
}

/** The words of a column `search` that are longer than the indexed prefixes. */
export function longWords(search: string): string[] {
  return search.split(' ').filter((word) => word.length > 5 && /^[^~=@]/.test(word))
}

function audiencesOf(row: StoredProfileRow): readonly string[] {
  return Array.from(row[7].matchAll(/(?<= ~)\S*/g), ([audience]) => audience)
}

function nameKey(row: readonly [...ProfileRow, ...unknown[]]): string {
  return fold(JSON.parse(row[4]).name)
}
