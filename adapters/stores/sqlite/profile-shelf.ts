import { fold } from '../../../core/content/fold.ts'
import type { ProfileRecord } from '../../../core/content/records.ts'
import { cardText, detailText, readCard, readDetail } from '../record-text.ts'
import { searchText } from '../search-text.ts'
import type { Database } from './database.ts'
import type { Shelf } from './shelves.ts'

type RecordRow = [country: string, industry: string, publishedAt: number | null, card: string, detail: string]

const recordColumns = 'country, industry, published_at, card, detail'

/** A profile is kept once, as its record; its listings and its words follow from that and are written with it. */
export function createProfileShelf(database: Database): Shelf<ProfileRecord> {
  const find = database.statement<[...RecordRow, id: number]>(
    `SELECT ${recordColumns}, id FROM profile WHERE slug = ?1`,
  )
  const insert = database.statement(`
    INSERT INTO profile (slug, country, industry, published_at, card, detail, search, updated_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`)
  const update = database.statement(`
    UPDATE profile SET country = ?2, industry = ?3, published_at = ?4, card = ?5, detail = ?6, search = ?7,
      updated_at = ?8 WHERE slug = ?1`)
  const erase = database.statement('DELETE FROM profile WHERE id = ?1')
  const list = database.statement('INSERT INTO listing VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)')
  const unlist = database.statement('DELETE FROM listing WHERE profile = ?1')
  const index = database.statement('INSERT INTO profile_word (rowid, words) VALUES (?1, ?2)')
  const unindex = database.statement('DELETE FROM profile_word WHERE rowid = ?1')

  function forget(id: number): void {
    unlist.run(id)
    unindex.run(id)
  }

  return {
    put(profile, now) {
      const { slug, country, industry, publishedAt } = profile
      const row: RecordRow = [country, industry, publishedAt ?? null, cardText(profile), detailText(profile)]
      const existing = find.get(slug)
      if (existing && row.every((value, column) => value === existing[column])) return 'unchanged'

      const search = searchText(profile)
      const { lastId } = (existing ? update : insert).run(slug, ...row, search, now)
      const id = existing ? existing[5] : lastId
      if (existing) forget(id)
      index.run(id, search)
      if (publishedAt !== undefined) {
        const nameKey = fold(profile.name)
        for (const audience of new Set(profile.visibleTo ?? [''])) {
          list.run(id, audience, country, industry, nameKey, slug, -publishedAt)
        }
      }
      return existing ? 'replaced' : 'created'
    },

    *all() {
      const rows = database.iterate<[...RecordRow, slug: string]>(
        `SELECT ${recordColumns}, slug FROM profile ORDER BY slug`,
      )
      for (const [country, industry, publishedAt, card, detail, slug] of rows) {
        yield {
          slug,
          country,
          industry,
          publishedAt: publishedAt ?? undefined,
          ...readCard(card),
          ...readDetail(detail),
        }
      }
    },

    has: (slug) => find.get(slug) !== undefined,
    neededBy: () => [],

    remove(slug) {
      const id = find.get(slug)?.[5]
      if (id === undefined) return
      forget(id)
      erase.run(id)
    },
  }
}
