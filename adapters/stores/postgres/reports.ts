import type { Environment } from '../../../core/model.ts'
import type { AuditEventType } from '../../../core/ports/audit.ts'
import {
  type Activity,
  ACTIVITY_TYPES,
  type ActivityType,
  type Reports,
} from '../../../core/ports/reports.ts'
import {
  activityFromEntry,
  activityFromExpiry,
  activityFromSignup,
  activityPositionsAfter,
  AUDITED_ACTIVITY_TYPES,
  BATCH_RETENTION_MS,
  BATCHES_PRUNED_PER_WRITE,
  COUNTS_PRUNED_PER_WRITE,
  mergePartnerDays,
  newestFirst,
  type PartnerDayRow,
  partnerDaysSql,
  summarySql,
  type SumRow,
  toSummary,
} from '../reports.ts'
import type { StoredRow } from '../row-format.ts'
import { readSignup } from '../signups.ts'
import { COPIED_TABLES, KEY_USAGE } from '../tables.ts'
import type { Database } from './database.ts'
import { columnParameters, createPruner, listText } from './sql.ts'

export function createReports(database: Database): Reports {
  const pruneBatches = createPruner(database, {
    table: 'usage_batch',
    key: ['id'],
    expiry: 'added_at',
    batchSize: BATCHES_PRUNED_PER_WRITE,
  })
  const { request_counts, key_request_counts } = COPIED_TABLES
  const pruneCounts = [
    ...[request_counts, key_request_counts].map(({ name, columns, keyLength }) => (
      { table: name, key: columns.slice(0, keyLength) }
    )),
    { table: 'signup_tally', key: ['partner', 'dimension', 'day', 'value', 'slot'] },
  ].map((counts) =>
    createPruner(database, {
      ...counts,
      expiry: 'day',
      condition: 'day < $1::text',
      batchSize: COUNTS_PRUNED_PER_WRITE,
    })
  )

  return {
    async recordUsage(counts, batch, keepFrom) {
      if (counts.length === 0) return
      const now = Date.now()
      const rows = counts.map((
        { partner, keyId = null, environment, day, endpoint, requests, errors },
      ) => [partner, keyId, environment, day, endpoint, requests, errors])
      await database.write(addUsageSql, [batch, now, ...columnParameters(rows)])
      pruneBatches(now - BATCH_RETENTION_MS)
      if (keepFrom === undefined) return
      for (const prune of pruneCounts) prune(keepFrom)
    },

    async summarise(partner, from, to) {
      return toSummary(await database.read<SumRow>(selectSums, [partner, from, to]))
    },

    async summarisePartners(from, to, after = '', limit) {
      const [row] = await database.read<[slug: string | null]>(partnerDays.last, [from, to, after, limit])
      const last = row?.[0] ?? null
      if (last === null) return []
      const page = [from, to, after, last]
      return mergePartnerDays(
        ...await Promise.all([
          database.read<PartnerDayRow>(partnerDays.requests, page),
          database.read<PartnerDayRow>(partnerDays.signups, page),
        ]),
      )
    },

    async keyUsage(keyIds, from, to) {
      const rows = await database.read<StoredRow>(
        `
        SELECT ${KEY_USAGE.columns} FROM partner_api.key_usage
        WHERE day BETWEEN $1 AND $2 ${keyIds === undefined ? '' : 'AND key_id = ANY ($3::text[])'}
        ORDER BY day, key_id, endpoint`,
        keyIds === undefined ? [from, to] : [from, to, listText(keyIds)],
      )
      return rows.map((row) => KEY_USAGE.read(row))
    },

    async listActivity(partner, { types, after, limit }, now) {
      const requestedTypes: ReadonlySet<ActivityType> = new Set(types.length === 0 ? ACTIVITY_TYPES : types)
      const positions = activityPositionsAfter(after, now)
      const rows = await database.read<ActivityRow>(activitySql, [
        partner,
        limit,
        listText(AUDITED_ACTIVITY_TYPES.filter((type) => requestedTypes.has(type))),
        ...positions.entries,
        ...positions.signups,
        requestedTypes.has('signup.created') ? limit : 0,
        ...positions.expiries,
        requestedTypes.has('key.expired') ? limit : 0,
      ])
      return rows.map((row) => readActivity(row, partner)).sort(newestFirst).slice(0, limit)
    },
  }
}

const selectSums = summarySql('partner_api.', '$')

const partnerDays = partnerDaysSql('partner_api.', '$')

/**
 * The batch first: a concurrent repetition waits for it, and adds nothing. Then the rows of each table in one order, which
 * prevents deadlocks between replicas. They are added up, because a statement can change each row only once.
 */
const addUsageSql = `
  WITH added AS (
    INSERT INTO partner_api.usage_batch (id, added_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING RETURNING id
  ), counts AS (
    SELECT partner, key_id, environment, day, endpoint, requests, errors
    FROM added, unnest(
      $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[]
    ) AS counts (partner, key_id, environment, day, endpoint, requests, errors)
  ), added_to_partners AS (
    INSERT INTO partner_api.usage AS sums (partner, day, endpoint, requests, errors)
    SELECT partner, day, endpoint, sum(requests), sum(errors) FROM counts WHERE environment = 'live'
    GROUP BY partner, day, endpoint ORDER BY partner, day, endpoint
    ON CONFLICT (partner, day, endpoint) DO UPDATE
    SET requests = sums.requests + excluded.requests, errors = sums.errors + excluded.errors
  )
  INSERT INTO partner_api.key_usage AS sums (key_id, day, endpoint, requests, errors)
  SELECT key_id, day, endpoint, sum(requests), sum(errors) FROM counts WHERE key_id IS NOT NULL
  GROUP BY key_id, day, endpoint ORDER BY key_id, day, endpoint
  ON CONFLICT (key_id, day, endpoint) DO UPDATE
  SET requests = sums.requests + excluded.requests, errors = sums.errors + excluded.errors`

/**
 * `id`, `subject` and `record` are those of an audit entry, with its key after the change; id, environment and record of a
 * signup; or id, environment and hint of a key.
 */
type ActivityRow = [
  type: string,
  at: number,
  id: string,
  keyId: string | null,
  subject: string | null,
  record: string | null,
]

/**
 * Merges the first rows of each type, which has an index of its own, in one snapshot. Entries beyond the recorded end of
 * the audit log were not written by the store. `sequence + 0` keeps the planner from reading the log in its own order.
 */
const activitySql = `
  (
    SELECT type, at, id, key_id, subject, after FROM unnest($3::text[]) AS asked (one) CROSS JOIN LATERAL (
      SELECT type, at, id, key_id, subject, after, recency FROM partner_api.audit
      WHERE partner = $1 AND type = one AND (recency, id) > ($4::bigint, $5::text)
        AND sequence + 0 BETWEEN 1 AND (SELECT audit_sequence FROM partner_api.store)
      ORDER BY recency, id LIMIT $2
    ) AS first ORDER BY recency, id LIMIT $2
  ) UNION ALL (
    SELECT 'signup.created', created_at, id, key_id, environment, record FROM partner_api.signup
    WHERE partner = $1 AND environment = 'live' AND (recency, id) > ($6::bigint, $7::text)
    ORDER BY recency, id LIMIT $8
  ) UNION ALL (
    SELECT 'key.expired', -end_recency, id, id, environment, hint FROM partner_api.partner_key
    WHERE partner = $1 AND end_recency IS NOT NULL AND (end_recency, id) > ($9::bigint, $10::text)
    ORDER BY end_recency, id LIMIT $11
  )`

function readActivity([type, at, id, keyId, subject, record]: ActivityRow, partner: string): Activity {
  if (type === 'signup.created') {
    return activityFromSignup(readSignup([id, partner, keyId!, subject!, at, record!]))
  }
  if (type === 'key.expired') {
    return activityFromExpiry({ id, environment: subject as Environment, hint: record! }, at)
  }
  return activityFromEntry({
    id,
    at,
    type: type as AuditEventType,
    keyId: keyId ?? undefined,
    subject: subject ?? undefined,
    after: record ?? undefined,
  })
}
