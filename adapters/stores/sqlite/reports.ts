import { createClock } from '../../../core/lib/clock.ts'
import type { Environment } from '../../../core/model.ts'
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
  type ActivityPositions,
  activityPositionsAfter,
  BATCH_RETENTION_MS,
  BATCHES_PRUNED_PER_WRITE,
  COUNTS_PRUNED_PER_WRITE,
  type Dated,
  mergePartnerDays,
  newestFirst,
  type PartnerDayRow,
  partnerDaysSql,
  summarySql,
  type SumRow,
  toSummary,
} from '../reports.ts'
import type { StoredRow } from '../row-format.ts'
import { AUDIT_ENTRIES, AUDIT_READ_COLUMNS, COPIED_TABLES, KEY_USAGE } from '../tables.ts'
import { type Database, transactionWithRetry } from './database.ts'
import type { createSignups } from './signups.ts'

export function createUsageCounts(database: Database) {
  const clock = createClock()
  const insertBatch = database.statement(
    'INSERT INTO usage_batch (id, added_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING',
  )
  const pruneBatches = database.statement(`
    DELETE FROM usage_batch WHERE id IN (
      SELECT id FROM usage_batch WHERE added_at <= ?1 ORDER BY added_at LIMIT ${BATCHES_PRUNED_PER_WRITE}
    )`)
  const { request_counts, signup_counts, key_request_counts } = COPIED_TABLES
  const [addCounts, addKeyCounts] = [request_counts, key_request_counts].map(({ name, columns }) =>
    database.statement(`
      INSERT INTO ${name} (${columns}) VALUES (?1, ?2, ?3, ?4, ?5)
      ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, errors = errors + excluded.errors`)
  )
  const pruneCounts = [request_counts, signup_counts, key_request_counts].map(
    ({ name, columns, keyLength }) => {
      const key = columns.slice(0, keyLength)
      return database.statement(`
        DELETE FROM ${name} WHERE (${key}) IN (
          SELECT ${key} FROM ${name} WHERE day < ?1 ORDER BY day LIMIT ${COUNTS_PRUNED_PER_WRITE}
        )`)
    },
  )
  const selectSums = database.statement<SumRow>(summarySql('', '?'))
  const partnerDays = partnerDaysSql('', '?')
  const selectLastPartner = database.statement<[slug: string | null]>(partnerDays.last)
  const selectRequests = database.statement<PartnerDayRow>(partnerDays.requests)
  const selectSignups = database.statement<PartnerDayRow>(partnerDays.signups)
  const usageOrder = 'ORDER BY day, key_id, endpoint'
  const selectUsage = database.statement(
    `SELECT ${KEY_USAGE.columns} FROM key_usage WHERE day BETWEEN ?1 AND ?2 ${usageOrder}`,
  )
  // Each key by the primary key: CROSS JOIN keeps the planner from reading whole days.
  const selectUsageOfKeys = database.statement(`
    SELECT ${KEY_USAGE.columns} FROM json_each(?3) CROSS JOIN key_usage ON key_id = value AND day BETWEEN ?1 AND ?2
    ${usageOrder}`)

  return {
    recordUsage(counts, batch, keepFrom = '') {
      if (counts.length === 0) return
      return transactionWithRetry(database, () => {
        const now = clock.now()
        if (insertBatch.run(batch, now) === 0) return
        pruneBatches.run(now - BATCH_RETENTION_MS)
        for (const { partner, keyId, environment, day, endpoint, requests, errors } of counts) {
          if (environment === 'live') addCounts!.run(partner, day, endpoint, requests, errors)
          if (keyId !== undefined) addKeyCounts!.run(keyId, day, endpoint, requests, errors)
        }
        for (const statement of pruneCounts) statement.run(keepFrom)
      })
    },

    summarise: (partner, from, to) => toSummary(selectSums.all(partner, from, to)),

    summarisePartners: (from, to, after = '', limit) =>
      database.snapshot(() => {
        const [last] = selectLastPartner.get(from, to, after, limit)!
        if (last === null) return []
        const page = [from, to, after, last]
        return mergePartnerDays(selectRequests.all(...page), selectSignups.all(...page))
      }),

    keyUsage(keyIds, from, to) {
      const rows = keyIds === undefined
        ? selectUsage.all(from, to)
        : selectUsageOfKeys.all(from, to, JSON.stringify(keyIds))
      return rows.map((row) => KEY_USAGE.read(row))
    },
  } satisfies Omit<Reports, 'listActivity'>
}

/** A row of the report whose details are read only if it makes it onto the page. */
interface Candidate extends Dated {
  read(): Activity
}

/**
 * Merges the first rows of each type, which an index of its own provides: no page reads rows that it does not show,
 * however many there are.
 */
export function createActivityList(
  database: Database,
  readSignups: ReturnType<typeof createSignups>['readSignups'],
) {
  // Entries beyond the recorded end of the log were not written by the store. Without the plus, SQLite would read the
  // log in its own order and sort it.
  const selectEntries = database.statement<[sequence: number, at: number, id: string]>(`
    SELECT sequence, -recency, id FROM audit
    WHERE partner = ?1 AND type = ?2 AND (recency, id) > (?3, ?4)
      AND +sequence BETWEEN 1 AND (SELECT audit_sequence FROM store)
    ORDER BY recency, id LIMIT ?5 + 0`)
  const selectEntry = database.statement<StoredRow>(
    `SELECT ${AUDIT_READ_COLUMNS} FROM audit WHERE sequence = ?1`,
  )
  const selectExpired = database.statement<[id: string, hint: string, environment: string, at: number]>(`
    SELECT id, hint, environment, -end_recency FROM partner_key
    WHERE partner = ?1 AND end_recency IS NOT NULL AND (end_recency, id) > (?2, ?3)
    ORDER BY end_recency, id LIMIT ?4 + 0`)

  function candidates(
    type: ActivityType,
    partner: string,
    positions: ActivityPositions,
    limit: number,
  ): Candidate[] {
    if (type === 'signup.created') {
      return readSignups(partner, 'live', positions.signups, limit)
        .map((signup) => toCandidate(activityFromSignup(signup)))
    }
    if (type === 'key.expired') {
      return selectExpired.all(partner, ...positions.expiries, limit)
        .map(([id, hint, environment, at]) =>
          toCandidate(activityFromExpiry({ id, hint, environment: environment as Environment }, at))
        )
    }
    return selectEntries.all(partner, type, ...positions.entries, limit).map(([sequence, at, id]) => ({
      at,
      id,
      read: () => activityFromEntry(AUDIT_ENTRIES.read(selectEntry.get(sequence)!)),
    }))
  }

  return {
    listActivity(partner, { types, after, limit }, now) {
      const requestedTypes = new Set(types.length === 0 ? ACTIVITY_TYPES : types)
      const positions = activityPositionsAfter(after, now)
      return database.snapshot(() =>
        [...requestedTypes].flatMap((type) => candidates(type, partner, positions, limit))
          .sort(newestFirst)
          .slice(0, limit)
          .map(({ read }) => read())
      )
    },
  } satisfies Pick<Reports, 'listActivity'>
}

function toCandidate(row: Activity): Candidate {
  return { at: row.at, id: row.id, read: () => row }
}
