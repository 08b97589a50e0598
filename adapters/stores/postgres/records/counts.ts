import type { Reports } from '../../../../core/ports.ts'
import type { UsageCount } from '../../../../core/reports/usage.ts'
import { DAYS_OF_SIGNUPS, summaryOf } from '../../summary-rows.ts'
import { BATCH_LASTS_MS, BATCHES_PRUNED, COUNTS_PRUNED } from '../../usage-batches.ts'
import { type Database, listText } from '../connection/database.ts'
import { createForget } from '../sharing/forget.ts'

export function createCounts(database: Database): Omit<Reports, 'listActivity'> {
  const forgetBatches = createForget(database, {
    table: 'usage_batch',
    key: ['id'],
    until: 'added_at',
    atOnce: BATCHES_PRUNED,
  })
  const ofDays = { until: 'day', isOver: 'day < $1::text', atOnce: COUNTS_PRUNED }
  const forgetRequests = createForget<string>(database, {
    table: 'usage',
    key: ['partner', 'day', 'endpoint'],
    ...ofDays,
  })
  const forgetSignups = createForget<string>(database, {
    table: 'signup_tally',
    key: ['partner', 'dimension', 'day', 'value', 'slot'],
    ...ofDays,
  })

  return {
    async recordUsage(counts, batch, keepFrom) {
      if (counts.length === 0) return
      const now = Date.now()
      const sums = sumsOf(counts)
      await database.write(add, [
        batch,
        now,
        listText(sums.map(({ partner }) => partner)),
        listText(sums.map(({ day }) => day)),
        listText(sums.map(({ endpoint }) => endpoint)),
        listText(sums.map(({ requests }) => requests)),
        listText(sums.map(({ errors }) => errors)),
      ])
      forgetBatches(now - BATCH_LASTS_MS)
      if (keepFrom === undefined) return
      forgetRequests(keepFrom)
      forgetSignups(keepFrom)
    },

    async summarise(partner, from, to) {
      const rows = await database.read<SumRow>(sums, [partner, from, to])
      const requestsBy = (part: string) =>
        rows.filter((row) => row[0] === part).map(([, value, count, errors]) =>
          [value, count, errors] as const
        )
      const signupsBy = (part: string) => requestsBy(part).map(([value, count]) => [value, count] as const)
      return summaryOf({
        plans: signupsBy('plans'),
        countries: signupsBy('countries'),
        signupDays: signupsBy('signupDays'),
        endpoints: requestsBy('endpoints'),
        requestDays: requestsBy('requestDays'),
      })
    },
  }
}

/**
 * The batch comes first: who sends it a second time at once waits for the first to be done, and has nothing to add.
 * Then every row in one order, so that no two replicas wait for each other.
 */
const add = `
  WITH added AS (
    INSERT INTO partner_api.usage_batch (id, added_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING RETURNING id
  )
  INSERT INTO partner_api.usage AS sums (partner, day, endpoint, requests, errors)
  SELECT partner, day, endpoint, requests, errors
  FROM added, unnest($3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[])
    AS counts (partner, day, endpoint, requests, errors)
  ORDER BY partner, day, endpoint
  ON CONFLICT (partner, day, endpoint) DO UPDATE
  SET requests = sums.requests + excluded.requests, errors = sums.errors + excluded.errors`

type SumRow = [part: string, value: string, count: number, errors: number]

const sums = [
  signupSums('plans', 'plan', 'value'),
  signupSums('countries', 'country', 'value'),
  signupSums('signupDays', DAYS_OF_SIGNUPS, 'day'),
  requestSums('endpoints', 'endpoint'),
  requestSums('requestDays', 'day'),
].join(' UNION ALL ')

function signupSums(part: string, dimension: 'plan' | 'country', column: 'value' | 'day'): string {
  return `
    SELECT '${part}', ${column}, sum(signups)::bigint, 0::bigint FROM partner_api.signup_tally
    WHERE partner = $1 AND dimension = '${dimension}' AND day BETWEEN $2 AND $3 GROUP BY ${column}`
}

function requestSums(part: string, column: 'endpoint' | 'day'): string {
  return `
    SELECT '${part}', ${column}, sum(requests)::bigint, sum(errors)::bigint FROM partner_api.usage
    WHERE partner = $1 AND day BETWEEN $2 AND $3 GROUP BY ${column}`
}

/** One count for each row that it goes to: a statement changes a row once. */
function sumsOf(counts: readonly UsageCount[]): readonly UsageCount[] {
  const sums = new Map<string, UsageCount>()
  for (const count of counts) {
    const row = [count.partner, count.day, count.endpoint].join('\n')
    const { requests, errors } = sums.get(row) ?? { requests: 0, errors: 0 }
    sums.set(row, { ...count, requests: requests + count.requests, errors: errors + count.errors })
  }
  return [...sums.values()]
}
