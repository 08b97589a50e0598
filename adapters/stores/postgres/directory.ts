import { isPublic } from '../../../core/ports/content.ts'
import type { Directory } from '../../../core/ports/directory.ts'
import { CARD_COLUMNS, type CardRow, readCardRow, readDetail } from '../sql/tables.ts'
import type { PostgresDatabase } from './database.ts'
import { readPage, toPageRange } from './pages.ts'
import { searchPage } from './search.ts'

export function createDirectory(database: PostgresDatabase) {
  return {
    async listProfiles(partner, query, now) {
      const { words, limit } = query
      const range = toPageRange(partner, query, now)
      if (range === undefined) return []
      const rows = words.length === 0
        ? await readPage(database, range, limit)
        : await searchPage(database, range, words, limit)
      return rows.map(readCardRow)
    },

    async findProfile(partner, slug, now) {
      if (slug.includes('\0')) return undefined
      const [row] = await database.lookUp<[detail: string, ...CardRow]>(
        `SELECT p.detail, ${CARD_COLUMNS}
        FROM partner_api.profile p JOIN partner_api.industry i ON i.slug = p.industry
        WHERE p.slug = $1 AND p.published_at <= $2`,
        [slug, now],
      )
      if (row === undefined) return undefined
      const [detailText, ...cardRow] = row
      const { visibleTo, ...detail } = readDetail(detailText)
      const card = readCardRow(cardRow)
      return isPublic({ publishedAt: card.publishedAt, visibleTo }, partner, now)
        ? { ...card, ...detail }
        : undefined
    },

    async countProfiles(partner, by, now) {
      // All listings, less those that are not due yet.
      const rows = await database.read<[name: string, profiles: number]>(
        `SELECT ${by}, sum(profiles)::bigint FROM (
          SELECT ${by}, listings AS profiles FROM partner_api.tally WHERE audience IN ('', $1)
          UNION ALL
          SELECT ${by}, -1 FROM partner_api.listing WHERE audience IN ('', $1) AND recency < $2
        ) AS counted GROUP BY ${by} HAVING sum(profiles) > 0`,
        [partner, -now],
      )
      return new Map(rows)
    },

    async nextProfileChangeAt(partner, now) {
      const due = 'SELECT max(recency) FROM partner_api.listing WHERE recency < $2 AND audience'
      const [row] = await database.lookUp<[recency: number | null]>(
        `SELECT greatest((${due} = ''), (${due} = $1))`,
        [partner, -now],
      )
      const recency = row?.[0] ?? undefined
      return recency === undefined ? undefined : -recency
    },
  } satisfies Omit<Directory, 'listIndustries'>
}
