import type { MaybePromise } from '../../../core/ports.ts'
import type { SummaryCounts } from '../../../core/reports/summary.ts'
import type { UsageCount } from '../../../core/reports/usage.ts'
import type { Database } from './database.ts'
import { transactionInTurn } from './patience.ts'

/** The part of `Reports` that counts. */
export interface Counts {
  recordUsage(counts: readonly UsageCount[]): MaybePromise<void>
  summarise(partner: string, from: string, to: string): SummaryCounts
}

export function createCounts(database: Database): Counts {
  const add = database.statement(`
    INSERT INTO usage (partner, day, endpoint, requests, errors) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, errors = errors + excluded.errors`)
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
    recordUsage(counts) {
      if (counts.length === 0) return
      return transactionInTurn(database, () => {
        for (const { partner, day, endpoint, requests, errors } of counts) {
          add.run(partner, day, endpoint, requests, errors)
        }
      })
    },

    summarise(partner, from, to) {
      return database.snapshot(() => ({
        signupsByPlan: signups.value.all(partner, 'plan', from, to)
          .map(([plan, count]) => ({ plan: plan === '' ? undefined : plan, signups: count })),
        signupsByCountry: signups.value.all(partner, 'country', from, to)
          .map(([country, count]) => ({ country: country === '' ? undefined : country, signups: count })),
        // Every signup has a plan or lacks one, so that either dimension has all of them; there are fewer plans.
        signupsByDay: signups.day.all(partner, 'plan', from, to)
          .map(([day, count]) => ({ day, signups: count })),
        requestsByEndpoint: requests.endpoint.all(partner, from, to)
          .map(([endpoint, count, errors]) => ({ endpoint, requests: count, errors })),
        requestsByDay: requests.day.all(partner, from, to)
          .map(([day, count, errors]) => ({ day, requests: count, errors })),
      }))
    },
  }
}
