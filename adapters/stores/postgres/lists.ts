/** Lists that PostgreSQL reads in its own way. */
import { AUDITED_TYPES, createActivityList, entriesSql } from '../sql/activity.ts'
import type { SqlReader } from '../sql/database.ts'
import { selectKeyList } from '../sql/partners-and-keys.ts'
import type { StoreLists } from '../sql/store.ts'
import { KEYS } from '../sql/tables.ts'
import { SqlError } from './errors.ts'

/** The entries of all audited types in one query, which is planned once, and not for each type. */
const selectEntries = `
  SELECT rows.* FROM unnest(CAST('{${AUDITED_TYPES}}' AS text[])) AS audited (type)
  CROSS JOIN LATERAL (${entriesSql('audited.type')}) AS rows`

export function createLists(sql: SqlReader): StoreLists {
  const { read } = sql
  return {
    async listKeys(filter, after, limit) {
      const { conditions, parameters } = selectKeyList(filter, after, limit)
      // Only the keys of one partner have an index by the column itself.
      const created = filter.partner === undefined ? 'created_at + 0' : 'created_at'
      const rows = await read(
        `SELECT ${KEYS.columns} FROM partner_api.partner_key WHERE (${created}, id) > ($1, $2)${conditions}
        ORDER BY ${created}, id LIMIT CAST($3 AS BIGINT)`,
        parameters,
      )
      return rows.map(KEYS.read)
    },

    listActivity: createActivityList(sql, selectEntries),

    async auditIntruders() {
      const names = await Promise.all(selectIntruders.map((select) => readCatalog(sql, select)))
      return [...new Set(names.flat())].sort()
    },
  }
}

/** Triggers, rules, views and policies of the schema, which change the effect of statements. */
const selectIntruders = [
  'SELECT tgname FROM pg_catalog.pg_trigger WHERE NOT tgisinternal AND tgrelid',
  "SELECT rulename FROM pg_catalog.pg_rewrite WHERE rulename <> '_RETURN' AND ev_class",
  "SELECT relname FROM pg_catalog.pg_class WHERE relkind IN ('v', 'm') AND oid",
  'SELECT polname FROM pg_catalog.pg_policy WHERE polrelid',
].map((select) => `
  ${select} IN (
    SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'partner_api'
  )`)

/** undefined_table, undefined_column, feature_not_supported: not every compatible server has each catalog. */
const missingCatalog: ReadonlySet<string> = new Set(['42P01', '42703', '0A000'])

async function readCatalog({ read }: SqlReader, select: string): Promise<string[]> {
  try {
    const rows = await read<[name: string]>(select)
    return rows.map(([name]) => name)
  } catch (error) {
    if (error instanceof SqlError && missingCatalog.has(error.code)) return []
    throw error
  }
}
