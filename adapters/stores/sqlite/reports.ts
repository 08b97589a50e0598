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
  DAILY_SIGNUP_DIMENSION,
  type Dated,
  newestFirst,
  toSummary,
} from '../reports.ts'
import type { StoredRow } from '../row-format.ts'
import { AUDIT_ENTRIES, AUDIT_READ_COLUMNS } from '../tables.ts'
import { type Database, transactionWithRetry } from './database.ts'
import type { Signups } from './signups.ts'

export function createUsageCounts(database: Database): Omit<Reports, 'listActivity'> {
  const insertBatch = database.statement(
    'INSERT INTO usage_batch (id, added_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING',
  )
  const pruneBatches = database.statement(`
    DELETE FROM usage_batch WHERE id IN (
      SELECT id FROM usage_batch WHERE added_at <= ?1 ORDER BY added_at LIMIT ${BATCHES_PRUNED_PER_WRITE}
    )`)
  const addCounts = database.statement(`
    INSERT INTO usage (partner, day, endpoint, requests, errors) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, errors = errors + excluded.errors`)
  const pruneCounts = [['usage', 'partner, day, endpoint'], [
    'signup_tally',
    'partner, dimension, day, value',
  ]].map(
    ([table, key]) =>
      database.statement(`
        DELETE FROM ${table} WHERE (${key}) IN (
          SELECT ${key} FROM ${table} WHERE day < ?1 ORDER BY day LIMIT ${COUNTS_PRUNED_PER_WRITE}
        )`),
  )
  const signupsBy = (column: 'value' | 'day') =>
    database.statement<[string, number]>(`
      SELECT ${column}, sum(signups) FROM signup_tally
      WHERE partner = ?1 AND dimension = ?2 AND day BETWEEN ?3 AND ?4 GROUP BY ${column}`)
  const requestsBy = (column: 'endpoint' | 'day') =>
    database.statement<[string, number, number]>(`
      SELECT ${column}, sum(requests), sum(errors) FROM usage
      WHERE partner = ?1 AND day BETWEEN ?2 AND ?3 GROUP BY ${column}`)
  const signups = { value: signupsBy('value'), day: signupsBy('day') }
  const requests = { endpoint: requestsBy('endpoint'), day: requestsBy('day') }

  return {
    recordUsage(counts, batch, keepFrom = '') {
      if (counts.length === 0) return
      return transactionWithRetry(database, () => {
        const now = Date.now()
        if (insertBatch.run(batch, now).changes === 0) return
        pruneBatches.run(now - BATCH_RETENTION_MS)
        for (const { partner, day, endpoint, requests, errors } of counts) {
          addCounts.run(partner, day, endpoint, requests, errors)
        }
        for (const statement of pruneCounts) statement.run(keepFrom)
      })
    },

    summarise(partner, from, to) {
      return database.snapshot(() =>
        toSummary({
          plans: signups.value.all(partner, 'plan', from, to),
          countries: signups.value.all(partner, 'country', from, to),
          signupDays: signups.day.all(partner, DAILY_SIGNUP_DIMENSION, from, to),
          endpoints: requests.endpoint.all(partner, from, to),
          requestDays: requests.day.all(partner, from, to),
        })
      )
    },
  }
}

/** What is known of a row before it is its turn to be read. */
interface Candidate extends Dated {
  read(): Activity
}

/**
 * Merges what comes first of each type, for which there is an index each: no page looks at rows of which it shows none,
 * however many there are, nor reads entries that do not make it onto the page.
 */
export function createActivityList(database: Database, signups: Signups): Pick<Reports, 'listActivity'> {
  // Rows outside of what the trail's head knows were put there past the store. Without the plus, SQLite would read the
  // trail in its own order and sort it.
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
      return signups.readSignups(partner, 'live', positions.signups, limit).map(activityFromSignup).map(
        toCandidate,
      )
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
  }
}

function toCandidate(row: Activity): Candidate {
  return { at: row.at, id: row.id, read: () => row }
}
