import { andThen } from '../../../core/lib/promise.ts'
import type { Environment } from '../../../core/model.ts'
import type { AuditEventType } from '../../../core/ports/audit.ts'
import {
  type Activity,
  ACTIVITY_TYPES,
  type ActivityType,
  PROBLEM_RETENTION_MS,
  PROBLEMS_PER_HOUR,
  type Reports,
  type SummaryCounts,
  type UsageCount,
} from '../../../core/ports/reports.ts'
import {
  activityFromEntry,
  activityFromExpiry,
  activityFromSignup,
  EXPIRY_PREFIX,
  mergePartnerDays,
  type PartnerDayRow,
  SIGNUP_PREFIX,
  type SumRow,
  toSummary,
} from '../reports.ts'
import { createRowFormat } from '../row-format.ts'
import { readSignup } from '../signups.ts'
import { COPIED_TABLES, KEY_USAGE, PROBLEMS } from '../tables.ts'
import { type Dialect, idsSql, idsText, pruneSql, rowsSql, rowsText, type SqlDatabase } from './database.ts'

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

export function createReports({ dialect, read, write, prune }: SqlDatabase): Reports {
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
  const selectActivity = activitySql(dialect)
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

    summarise: (partner, from, to) => andThen(read<SumRow>(summarySql, [partner, from, to]), toSummary),

    summarisePartners: (from, to, after = '', limit) =>
      andThen(read<PartnerDayRow>(partnerDaysSql, [from, to, after, limit]), mergePartnerDays),

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

    listActivity(partner, { types, after, limit }, now) {
      const requested = JSON.stringify(types.length === 0 ? ACTIVITY_TYPES : types)
      // No id is empty: rows at `now` come after this position.
      const { at, id } = after === undefined || after.at > now ? { at: now, id: '' } : after
      return andThen(
        read<ActivityRow>(selectActivity, [
          ...[partner, limit, requested, -at, id],
          ...[storedId(id, SIGNUP_PREFIX, 'sgn_'), storedId(id, EXPIRY_PREFIX, '')],
        ]),
        (rows) => rows.map((row) => readActivity(row, partner)),
      )
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

const sumsSql = (part: keyof SummaryCounts, column: string, table: string, sums: string, condition = '') => `
  SELECT '${part}', ${column}, ${sums} FROM partner_api.${table}
  WHERE partner = $1 AND day BETWEEN $2 AND $3 ${condition} GROUP BY ${column}`
const signupSum = 'CAST(sum(signups) AS BIGINT)'
const requestSums = 'CAST(sum(requests) AS BIGINT), CAST(sum(errors) AS BIGINT)'

/** The rows of `toSummary`. Its parameters are the partner, the first day and the last. */
const summarySql = [
  sumsSql('signupsByPlan', 'value', 'signup_tally', `${signupSum}, 0`, `AND dimension = 'plan'`),
  sumsSql('signupsByCountry', 'value', 'signup_tally', `${signupSum}, 0`, `AND dimension = 'country'`),
  // Every signup counts once in each dimension, so either has the sums by day; there are fewer plans than countries.
  sumsSql('signupsByDay', 'day', 'signup_tally', `${signupSum}, 0`, `AND dimension = 'plan'`),
  sumsSql('requestsByEndpoint', 'endpoint', 'usage', requestSums),
  sumsSql('requestsByDay', 'day', 'usage', requestSums),
].join(' UNION ALL ')

const isCounted = (table: string) => `
  EXISTS (SELECT 1 FROM partner_api.${table} AS counted WHERE counted.partner = slug AND counted.day BETWEEN $1 AND $2)`

/** Counts of the partners of a page: CROSS JOIN keeps SQLite from reading by day, which takes four times as long. */
const pageSql = (table: string, sums: string, condition = '') => `
  SELECT partner, day, ${sums} FROM partner_api.partner CROSS JOIN partner_api.${table}
  WHERE slug > $3 AND slug <= (SELECT last FROM page) AND partner = slug AND day BETWEEN $1 AND $2 ${condition}
  GROUP BY partner, day`

/** The rows of `mergePartnerDays`. Its parameters are the first day, the last, the slug before and the limit. */
const partnerDaysSql = `
  WITH page AS MATERIALIZED (
    SELECT max(slug) AS last FROM (
      SELECT slug FROM partner_api.partner WHERE slug > $3 AND (${isCounted('usage')} OR ${
  isCounted('signup_tally')
})
      ORDER BY slug LIMIT CAST($4 AS BIGINT)
    ) AS counted
  )
  ${pageSql('usage', `${requestSums}, 0`)} UNION ALL
  ${pageSql('signup_tally', `0, 0, ${signupSum}`, `AND dimension = 'plan'`)}`

/** Of an audit entry, a signup or a key: `subject` is the environment of the last two, `record` the hint of a key. */
type ActivityRow = readonly [
  type: ActivityType,
  at: number,
  id: string,
  keyId: string | null,
  subject: string | null,
  record: string | null,
]

interface Segment {
  /** An SQL expression. */
  readonly type: string
  /** A table with a condition. */
  readonly source: string
  readonly recency: string
  /** The id that clients see. */
  readonly shown: string
  /** The parameter with the id to start after, among rows of one instant. */
  readonly afterId: string
  /** The last columns of `ActivityRow`. */
  readonly details: string
}

/**
 * The first rows of a type, if it is requested. Each type has an index of its own, or a part of one, which is read from
 * the position on: an import or a removal can give any number of rows one instant.
 */
const segmentSql = ({ type, source, recency, shown, afterId, details }: Segment) => `
  SELECT * FROM (
    SELECT ${type} AS type, ${recency} AS recency, ${shown} AS shown, ${details} FROM partner_api.${source}
      AND partner = $1 AND (${recency}, id) > ($4, ${afterId})
    ORDER BY ${recency}, id
    LIMIT CASE WHEN CAST($3 AS TEXT) LIKE '%"' || ${type} || '"%' THEN CAST($2 AS BIGINT) ELSE 0 END
  ) AS segment`

const entriesSql = (type: string) =>
  segmentSql({
    type,
    // Entries beyond the recorded end of the log were not written by the store. Without the sum, it would be read in its
    // own order and sorted.
    source:
      `audit WHERE audit.type = ${type} AND sequence + 0 BETWEEN 1 AND (SELECT audit_sequence FROM partner_api.store)`,
    recency: 'recency',
    shown: 'id',
    afterId: '$5',
    details: 'id, key_id, subject, after',
  })

const signupsSql = segmentSql({
  type: `'signup.created'`,
  source: `signup WHERE environment = 'live'`,
  recency: 'recency',
  shown: `'${SIGNUP_PREFIX}' || substr(id, 5)`,
  afterId: '$6',
  details: 'id, key_id, environment, record',
})

const expiriesSql = segmentSql({
  type: `'key.expired'`,
  source: 'partner_key WHERE end_recency IS NOT NULL',
  recency: 'end_recency',
  shown: `'${EXPIRY_PREFIX}' || id`,
  afterId: '$7',
  details: 'id, id, environment, hint',
})

/** A shown id as a position among stored ids, which begin with `stored` instead of `prefix`. Both have the same order. */
function storedId(id: string, prefix: string, stored: string): string {
  if (id.startsWith(prefix)) return stored + id.slice(prefix.length)
  return id < prefix ? '' : '\u{10ffff}'
}

const auditedTypes = ACTIVITY_TYPES.filter((type) => type !== 'signup.created' && type !== 'key.expired')

/**
 * Parameters: the partner, the limit, JSON of types, and the position before the page: its recency, and its id among
 * entries, signups and keys. Reading details for the rows of the page only would make it so costly to PostgreSQL's planner
 * that each call is planned anew.
 */
const activitySql = ({ forEach }: Dialect) => `
  SELECT type, -recency, id, key_id, subject, after FROM (
    ${forEach(auditedTypes, entriesSql)} UNION ALL ${signupsSql} UNION ALL ${expiriesSql}
  ) AS merged
  ORDER BY recency, shown LIMIT CAST($2 AS BIGINT)`

function readActivity([type, at, id, keyId, subject, record]: ActivityRow, partner: string): Activity {
  if (type === 'signup.created') {
    return activityFromSignup(readSignup([id, partner, keyId!, subject as Environment, at, record!]))
  }
  if (type === 'key.expired') {
    return activityFromExpiry({ id, environment: subject as Environment, hint: record! }, at)
  }
  const details = { keyId: keyId ?? undefined, subject: subject ?? undefined, after: record ?? undefined }
  return activityFromEntry({ id, at, type: type satisfies AuditEventType, ...details })
}
