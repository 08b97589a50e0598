/** Tables of content, in a transaction of either database. */
import { andThen } from '../../../core/lib/promise.ts'
import type { ContentKind, ContentRecords } from '../../../core/ports/content.ts'
import type { ContentTable, ContentTables } from '../content.ts'
import { CONTENT_TABLES } from '../tables.ts'
import { type Dialect, idsSql, idsText, type Query, upsertRowsSql } from './database.ts'

/** The kinds that nothing else follows from. */
export function openPlainTables(dialect: Dialect, query: Query): Omit<ContentTables, 'profiles'> {
  return {
    industries: {
      ...openTable(dialect, query, 'industries'),
      // In one statement: foreign keys are checked at its end, and parents may come after children.
      batchSize: Infinity,
      findReferenced: (slugs) =>
        andThen(
          query<[slug: string]>(
            `SELECT needed.id FROM ${idsSql(dialect, '$1')} AS needed
            WHERE EXISTS (SELECT 1 FROM partner_api.profile p WHERE p.industry = needed.id) OR EXISTS (
              SELECT 1 FROM partner_api.industry i
              WHERE i.parent_slug = needed.id AND i.slug NOT IN ${idsSql(dialect, '$1')}
            )`,
            [idsText(slugs)],
          ),
          (rows) => rows.map(([slug]) => slug),
        ),
    },
    plans: openTable(dialect, query, 'plans'),
    banners: openTable(dialect, query, 'banners'),
  }
}

export function openTable<K extends ContentKind>(
  dialect: Dialect,
  query: Query,
  kind: K,
): ContentTable<ContentRecords[K]> {
  const { name, columns, isDated } = CONTENT_TABLES[kind]
  const selected = `FROM partner_api.${name} WHERE ${columns[0]} IN ${idsSql(dialect, '$1')}`
  const upsert = upsertRowsSql(dialect, name, isDated ? [...columns, 'updated_at'] : columns)

  return {
    batchSize: 500,
    find: (slugs) =>
      andThen(
        query(`SELECT ${columns} ${selected}`, [idsText(slugs)]),
        (rows) => new Map(rows.map((row) => [String(row[0]), row])),
      ),
    write(drafts) {
      if (drafts.length === 0) return
      const rows = drafts.map(({ row, updatedAt }) => isDated ? [...row, updatedAt] : row)
      return andThen(query(upsert, [JSON.stringify(rows)]), () => undefined)
    },
    remove: (slugs) => andThen(query(`DELETE ${selected}`, [idsText(slugs)]), () => undefined),
  }
}
