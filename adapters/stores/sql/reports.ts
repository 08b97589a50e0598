/** Counts of requests, and problems of keys. */
import { andThen } from '../../../core/lib/promise.ts'
import { PROBLEM_RETENTION_MS, type Reports, type UsageCount } from '../../../core/ports/reports.ts'
import { PROBLEMS_PER_HOUR } from '../../../core/reports/problem-log.ts'
import {
  type Dialect,
  idsSql,
  idsText,
  pruneSql,
  query,
  rowsSql,
  rowsText,
  type SqlDatabase,
} from './database.ts'
import { createRowFormat } from './row-format.ts'
import { createSummaries, REQUEST_SUMS } from './summaries.ts'
import { COPIED_TABLES, KEY_USAGE, PROBLEMS } from './tables.ts'

/** Milliseconds for which a batch of counts is remembered: longer than any process resends it. */
const batchRetentionMs = 86_400_000

/** Forgotten batches, expired counts of each table and problems that a write removes at most: more than it adds. */
const batchesPruned = 2
const countsPruned = 200
const problemsPruned = 50

const { request_counts, signup_counts, key_request_counts } = COPIED_TABLES
const countFormat = createRowFormat<UsageCount>()(
  ['partner', 'keyId', 'environment', 'day', 'endpoint', 'requests', 'errors'],
)

export function createReports(sql: SqlDatabase): Omit<Reports, 'listActivity'> {
  const { dialect, read, transaction, prune } = sql
  const statements = statementsOf(dialect)

  return {
    ...createSummaries(sql),

    recordUsage(counts, batch, keepFrom, problems = []) {
      if (counts.length === 0 && problems.length === 0) return
      const added = transaction(function* () {
        // A concurrent repetition waits here until the first one is committed.
        const isNew = (yield* query(statements.addBatch, [batch])).length > 0
        if (!isNew) return
        yield* query(statements.addCounts, [rowsText(countFormat, counts)])
        yield* query(statements.addKeyCounts, [rowsText(countFormat, counts)])
        yield* query(statements.addProblems, [rowsText(PROBLEMS, problems)])
      })
      return andThen(added, () => {
        prune(statements.pruneBatches, [])
        if (problems.length > 0) {
          const keyIds = problems.map(({ keyId }) => keyId)
          const firstAt = Math.min(...problems.map(({ at }) => at))
          prune(statements.trimProblems, [idsText(keyIds), firstAt])
        }
        if (keepFrom === undefined) return
        for (const pruneTable of statements.pruneCounts) prune(pruneTable, [keepFrom])
        prune(statements.pruneProblems, [])
      })
    },

    keyUsage(keyIds, from, to) {
      // CROSS JOIN has SQLite read each key by the primary key, and not whole days.
      const sql = `
        SELECT ${KEY_USAGE.columns} FROM ${idsSql(dialect, '$3')} AS listed CROSS JOIN partner_api.key_usage
        WHERE day BETWEEN $1 AND $2 AND key_id = listed.id ORDER BY day, key_id, endpoint`
      return andThen(read(sql, [from, to, idsText(keyIds)]), (rows) => rows.map(KEY_USAGE.read))
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

/** The statements that record what was counted, and remove what has expired. */
function statementsOf(dialect: Dialect) {
  return {
    addBatch: `
      INSERT INTO partner_api.usage_batch (id, added_at) VALUES ($1, ${dialect.now})
      ON CONFLICT (id) DO NOTHING RETURNING 1`,
    addCounts: addCountsSql(dialect, request_counts, `environment = 'live'`),
    addKeyCounts: addCountsSql(dialect, key_request_counts, 'key_id IS NOT NULL'),
    addProblems: `
      INSERT INTO partner_api.problem (${PROBLEMS.columns})
      SELECT ${PROBLEMS.columns} FROM ${rowsSql(dialect, PROBLEMS.columns)} AS given
      WHERE true ON CONFLICT DO NOTHING`,
    trimProblems: trimProblemsSql(dialect),
    pruneBatches: pruneSql(dialect, {
      table: 'usage_batch',
      key: ['id'],
      expiry: 'added_at',
      condition: `added_at <= (SELECT ${dialect.now}) - ${batchRetentionMs}`,
      batchSize: batchesPruned,
    }),
    pruneProblems: pruneSql(dialect, {
      table: 'problem',
      key: ['key_id', 'at', 'id'],
      expiry: 'at',
      condition: `at <= (SELECT ${dialect.now}) - ${PROBLEM_RETENTION_MS}`,
      batchSize: problemsPruned,
    }),
    /** The statements that delete old counts, one for each table. */
    pruneCounts: [request_counts, signup_counts, key_request_counts].map((table) =>
      pruneSql(dialect, {
        table: table.name,
        key: table.columns.slice(0, table.keyLength),
        expiry: 'day',
        condition: 'day < CAST($1 AS TEXT)',
        batchSize: countsPruned,
      })
    ),
  }
}

/**
 * Deletes what keys have beyond the first problems of an hour. Servers that write at the same time do not see
 * each other's problems: the last one deletes what is too much. Its parameters are ids of keys, and an
 * instant in the first hour.
 */
const trimProblemsSql = (dialect: Dialect) => {
  const written = `
    FROM partner_api.problem WHERE at >= CAST($2 AS BIGINT) / 3600000 * 3600000 AND key_id IN`
  // Few keys have too many: counting is a seventh of the work of ranking.
  return `
  DELETE FROM partner_api.problem WHERE (key_id, at, id) IN (
    SELECT key_id, at, id FROM (
      SELECT key_id, at, id, row_number() OVER (PARTITION BY key_id, at / 3600000 ORDER BY at, id) AS position
      ${written} (
        SELECT key_id ${written} ${idsSql(dialect, '$1')}
        GROUP BY key_id HAVING count(*) > ${PROBLEMS_PER_HOUR}
      )
    ) AS ranked WHERE position > ${PROBLEMS_PER_HOUR}
  )`
}

/**
 * Adds the counts of a parameter, `$1`, to a table. Processes add rows in one order, which prevents deadlocks, and
 * sum them up before, because a statement can change each row only once.
 */
function addCountsSql(
  dialect: Dialect,
  { name, columns, keyLength }: { name: string; columns: readonly string[]; keyLength: number },
  condition: string,
): string {
  const key = columns.slice(0, keyLength)
  return `
    INSERT INTO partner_api.${name} AS sums (${columns})
    SELECT ${key}, ${REQUEST_SUMS} FROM ${rowsSql(dialect, countFormat.columns)} AS counts
    WHERE ${condition} GROUP BY ${key} ORDER BY ${key}
    ON CONFLICT (${key}) DO UPDATE
    SET requests = sums.requests + excluded.requests, errors = sums.errors + excluded.errors`
}
