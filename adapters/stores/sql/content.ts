/** Tables of content of either database. */
import type { ContentKind, ContentRecords } from '../../../core/ports/content.ts'
import type { ContentTable, ContentTables } from '../content.ts'
import { CONTENT_TABLES } from '../tables.ts'
import { type Dialect, idsSql, idsText, query, upsertRowsSql } from './database.ts'

/** The kinds that nothing else follows from. */
export function createPlainTables(dialect: Dialect): Omit<ContentTables, 'profiles'> {
  return {
    industries: {
      ...createTable(dialect, 'industries'),
      // In one statement: foreign keys are checked at its end, and parents may come after children.
      batchSize: Infinity,
      *findReferenced(slugs) {
        const rows = yield* query<[slug: string]>(
          `SELECT needed.id FROM ${idsSql(dialect, '$1')} AS needed
          WHERE EXISTS (SELECT 1 FROM partner_api.profile p WHERE p.industry = needed.id) OR EXISTS (
            SELECT 1 FROM partner_api.industry i
            WHERE i.parent_slug = needed.id AND i.slug NOT IN ${idsSql(dialect, '$1')}
          )`,
          [idsText(slugs)],
        )
        return rows.map(([slug]) => slug)
      },
    },
    plans: createTable(dialect, 'plans'),
    banners: createTable(dialect, 'banners'),
  }
}

export function createTable<K extends ContentKind>(
  dialect: Dialect,
  kind: K,
): ContentTable<ContentRecords[K]> {
  const { name, columns, isDated } = CONTENT_TABLES[kind]
  const selected = `FROM partner_api.${name} WHERE ${columns[0]} IN ${idsSql(dialect, '$1')}`
  const upsert = upsertRowsSql(dialect, name, isDated ? [...columns, 'updated_at'] : columns)

  return {
    batchSize: 500,
    *find(slugs) {
      const rows = yield* query(`SELECT ${columns} ${selected}`, [idsText(slugs)])
      return new Map(rows.map((row) => [String(row[0]), row]))
    },
    *write(drafts) {
      const rows = drafts.map(({ row, updatedAt }) => isDated ? [...row, updatedAt] : row)
      if (rows.length > 0) yield* query(upsert, [JSON.stringify(rows)])
    },
    *remove(slugs) {
      yield* query(`DELETE ${selected}`, [idsText(slugs)])
    },
  }
}
