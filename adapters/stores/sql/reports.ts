/** Counts of requests, and problems of keys. */
import { andThen } from '../../../core/lib/promise.ts'
import {
  PROBLEM_RETENTION_MS,
  PROBLEMS_PER_HOUR,
  type Reports,
  type UsageCount,
} from '../../../core/ports/reports.ts'
import { createActivityList } from './activity.ts'
import { type Dialect, idsSql, idsText, pruneSql, rowsSql, rowsText, type SqlDatabase } from './database.ts'
import { createRowFormat } from './row-format.ts'
import { createSummaries, requestSums } from './summaries.ts'
import { COPIED_TABLES, KEY_USAGE, PROBLEMS } from './tables.ts'

/** Milliseconds for which a batch of counts is remembered: longer than any process resends it. */
const batchRetentionMs = 86_400_000

/** Forgotten batches, expired counts of each table and problems that a write removes at most: more than it adds. */
const batchesPruned = 2
const countsPruned = 200
const problemsPruned = 50

const { request_counts, signup_counts, key_request_counts } = COPIED_TABLES
const COUNTS = createRowFormat<UsageCount>()(
  ['partner', 'keyId', 'environment', 'day', 'endpoint', 'requests', 'errors'],
)

export function createReports(sql: SqlDatabase): Reports {
  const { dialect, read, write, prune } = sql
  const additions = [
    addCountsSql(dialect, request_counts, `environment = 'live'`),
    addCountsSql(dialect, key_request_counts, 'key_id IS NOT NULL'),
    `INSERT INTO partner_api.problem (${PROBLEMS.columns})
    SELECT ${PROBLEMS.columns} FROM ${rowsSql(dialect, PROBLEMS.columns, '$3')} AS given
    WHERE ${dialect.guarded} ON CONFLICT DO NOTHING`,
  ]
  // First: a concurrent repetition waits for it, and adds nothing.
  const addBatch = `
    INSERT INTO partner_api.usage_batch (id, added_at) VALUES ($1, ${dialect.now}) ON CONFLICT (id) DO NOTHING`
  const pruneBatches = pruneSql(dialect, {
    table: 'usage_batch',
    key: ['id'],
    expiry: 'added_at',
    condition: `added_at <= (SELECT ${dialect.now}) - ${batchRetentionMs}`,
    batchSize: batchesPruned,
  })
  const pruneProblems = pruneSql(dialect, {
    table: 'problem',
    key: ['key_id', 'at', 'id'],
    expiry: 'at',
    condition: `at <= (SELECT ${dialect.now}) - ${PROBLEM_RETENTION_MS}`,
    batchSize: problemsPruned,
  })
  const trimProblems = trimProblemsSql(dialect)
  const pruneCounts = [request_counts, signup_counts, key_request_counts].map((table) =>
    pruneSql(dialect, {
      table: table.name,
      key: table.columns.slice(0, table.keyLength),
      expiry: 'day',
      condition: 'day < CAST($1 AS TEXT)',
      batchSize: countsPruned,
    })
  )

  return {
    ...createSummaries(sql),
    listActivity: createActivityList(sql),

    recordUsage(counts, batch, keepFrom, problems = []) {
      if (counts.length === 0 && problems.length === 0) return
      const added = [batch, rowsText(COUNTS, counts), rowsText(PROBLEMS, problems)]
      return andThen(write(additions, added, addBatch), () => {
        prune([pruneBatches], [])
        const [keyIds, times] = [problems.map(({ keyId }) => keyId), problems.map(({ at }) => at)]
        if (problems.length > 0) prune([trimProblems], [idsText(keyIds), Math.min(...times)])
        if (keepFrom === undefined) return
        prune(pruneCounts, [keepFrom])
        prune([pruneProblems], [])
      })
    },

    keyUsage(keyIds, from, to) {
      // CROSS JOIN has SQLite read each key by the primary key, and not whole days.
      const keys = keyIds ? `${idsSql(dialect, '$3')} AS listed CROSS JOIN` : ''
      const sql = `
        SELECT ${KEY_USAGE.columns} FROM ${keys} partner_api.key_usage
        WHERE day BETWEEN $1 AND $2 ${keyIds ? 'AND key_id = listed.id' : ''} ORDER BY day, key_id, endpoint`
      const parameters = keyIds ? [from, to, idsText(keyIds)] : [from, to]
      return andThen(read(sql, parameters), (rows) => rows.map(KEY_USAGE.read))
    },

    listProblems({ since, partner, environment, keyId, id }, after, limit) {
      const columns = Object.entries({ partner, environment, key_id: keyId, id })
      const given = columns.flatMap(([column, value]) => value === undefined ? [] : [{ column, value }])
      const sql = `
        SELECT ${PROBLEMS.columns} FROM partner_api.problem WHERE at > $1 AND (at, id) < ($2, $3)
        ${given.map(({ column }, index) => `AND ${column} = $${index + 5}`).join(' ')}
        ORDER BY at DESC, id DESC LIMIT CAST($4 AS BIGINT)`
      const position = after === undefined ? [Number.MAX_SAFE_INTEGER, ''] : [after.at, after.id]
      const parameters = [since, ...position, limit, ...given.map(({ value }) => value)]
      return andThen(read(sql, parameters), (rows) => rows.map(PROBLEMS.read))
    },
  }
}

/**
 * Deletes what keys have beyond the first problems of an hour. Servers that write at the same time do not see each other's
 * problems: the last one deletes what is too much. Its parameters are ids of keys, and an instant in the first hour.
 */
const trimProblemsSql = (dialect: Dialect) => {
  const written = `
    FROM partner_api.problem WHERE at >= CAST($2 AS BIGINT) / 3600000 * 3600000 AND key_id IN`
  // Few keys have too many: counting is a seventh of the work of ranking.
  return `
  DELETE FROM partner_api.problem WHERE (key_id, at, id) IN (
    SELECT key_id, at, id FROM (
      SELECT key_id, at, id, row_number() OVER (PARTITION BY key_id, at / 3600000 ORDER BY at, id) AS place
      ${written} (
        SELECT key_id ${written} ${idsSql(dialect, '$1')}
        GROUP BY key_id HAVING count(*) > ${PROBLEMS_PER_HOUR}
      )
    ) AS ranked WHERE place > ${PROBLEMS_PER_HOUR}
  )`
}

/**
 * Adds the counts of a parameter, `$2`, to a table. Processes add rows in one order, which prevents deadlocks, and sum them
 * up before, because a statement can change each row only once.
 */
function addCountsSql(
  dialect: Dialect,
  { name, columns, keyLength }: { name: string; columns: readonly string[]; keyLength: number },
  condition: string,
): string {
  const key = columns.slice(0, keyLength)
  return `
    INSERT INTO partner_api.${name} AS sums (${columns})
    SELECT ${key}, ${requestSums} FROM ${rowsSql(dialect, COUNTS.columns, '$2')} AS counts
    WHERE ${condition} AND ${dialect.guarded} GROUP BY ${key} ORDER BY ${key}
    ON CONFLICT (${key}) DO UPDATE
    SET requests = sums.requests + excluded.requests, errors = sums.errors + excluded.errors`
}
