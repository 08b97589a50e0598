/** Lists that SQLite reads in its own way. */
import { andThen } from '../../../core/lib/promise.ts'
import { AUDITED_TYPES, createActivityList, entriesSql } from '../sql/activity.ts'
import type { SqlReader } from '../sql/database.ts'
import { selectKeyList } from '../sql/partners-and-keys.ts'
import type { StoreLists } from '../sql/store.ts'
import { KEYS } from '../sql/tables.ts'

const selectEntries = AUDITED_TYPES.map((type) => entriesSql(`'${type}'`)).join(' UNION ALL ')

export function createLists(sql: SqlReader): StoreLists {
  const { read } = sql
  return {
    listKeys(filter, after, limit) {
      const { conditions, parameters } = selectKeyList(filter, after, limit)
      // The inner query reads an index only.
      const rows = read(
        `SELECT ${KEYS.columns} FROM (
          SELECT created_at AS page_at, id AS page_id FROM partner_api.partner_key
          WHERE (created_at, id) > ($1, $2)${conditions} ORDER BY created_at, id LIMIT CAST($3 AS BIGINT)
        ) AS page CROSS JOIN partner_api.partner_key ON id = page_id ORDER BY page_at, page_id`,
        parameters,
      )
      return andThen(rows, (found) => found.map(KEYS.read))
    },

    listActivity: createActivityList(sql, selectEntries),

    /** The store itself has no triggers or views. */
    auditIntruders() {
      const rows = read<[name: string]>("SELECT name FROM sqlite_schema WHERE type IN ('trigger', 'view')")
      return andThen(rows, (found) => found.map(([name]) => name).sort())
    },
  }
}
