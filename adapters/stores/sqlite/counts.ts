import type { Reports } from '../../../core/ports.ts'
import { DAYS_OF_SIGNUPS, summaryOf } from '../summary-rows.ts'
import { BATCH_LASTS_MS, BATCHES_PRUNED, COUNTS_PRUNED } from '../usage-batches.ts'
import type { Database } from './database.ts'
import { transactionInTurn } from './patience.ts'

export function createCounts(database: Database): Omit<Reports, 'listActivity'> {
  const noteBatch = database.statement(
    'INSERT INTO usage_batch (id, added_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING',
  )
  const forgetBatches = database.statement(`
    DELETE FROM usage_batch WHERE id IN (
      SELECT id FROM usage_batch WHERE added_at <= ?1 ORDER BY added_at LIMIT ${BATCHES_PRUNED}
    )`)
  const add = database.statement(`
    INSERT INTO usage (partner, day, endpoint, requests, errors) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, errors = errors + excluded.errors`)
  const prune = [['usage', 'partner, day, endpoint'], ['signup_tally', 'partner, dimension, day, value']].map(
    ([table, key]) =>
      database.statement(`
        DELETE FROM ${table} WHERE (${key}) IN (
          SELECT ${key} FROM ${table} WHERE day < ?1 ORDER BY day LIMIT ${COUNTS_PRUNED}
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
      return transactionInTurn(database, () => {
        const now = Date.now()
        if (noteBatch.run(batch, now).changes === 0) return
        forgetBatches.run(now - BATCH_LASTS_MS)
        for (const { partner, day, endpoint, requests, errors } of counts) {
          add.run(partner, day, endpoint, requests, errors)
        }
        for (const statement of prune) statement.run(keepFrom)
      })
    },

    summarise(partner, from, to) {
      return database.snapshot(() =>
        summaryOf({
          plans: signups.value.all(partner, 'plan', from, to),
          countries: signups.value.all(partner, 'country', from, to),
          signupDays: signups.day.all(partner, DAYS_OF_SIGNUPS, from, to),
          endpoints: requests.endpoint.all(partner, from, to),
          requestDays: requests.day.all(partner, from, to),
        })
      )
    },
  }
}
