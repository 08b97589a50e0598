/** Sums of counts: of a partner over days, and of all partners by day. */
import { andThen } from '../../../core/lib/promise.ts'
import type { PartnerDay, Reports, SummaryCounts } from '../../../core/ports/reports.ts'
import type { SqlReader } from './database.ts'

const signupSum = 'CAST(sum(signups) AS BIGINT)'
/** The columns of requests and errors, summed up. */
export const REQUEST_SUMS = 'CAST(sum(requests) AS BIGINT), CAST(sum(errors) AS BIGINT)'

export function createSummaries(
  { read }: SqlReader,
): Pick<Reports, 'summarise' | 'summarisePartners'> {
  return {
    summarise: (partner, from, to) => andThen(read<SumRow>(summarySql, [partner, from, to]), toSummary),

    summarisePartners: (from, to, after = '', limit) =>
      andThen(read<PartnerDayRow>(partnerDaysSql, [from, to, after, limit]), mergePartnerDays),
  }
}

const sumsSql = (part: keyof SummaryCounts, column: string, table: string, sums: string, condition = '') => `
  SELECT '${part}', ${column}, ${sums} FROM partner_api.${table}
  WHERE partner = $1 AND day BETWEEN $2 AND $3 ${condition} GROUP BY ${column}`

/** The rows of `toSummary`. Its parameters are the partner, the first day and the last. */
const summarySql = [
  sumsSql('signupsByPlan', 'value', 'signup_tally', `${signupSum}, 0`, `AND dimension = 'plan'`),
  sumsSql('signupsByCountry', 'value', 'signup_tally', `${signupSum}, 0`, `AND dimension = 'country'`),
  // Every signup counts once in each dimension, so either has the sums by day; there are fewer plans than countries.
  sumsSql('signupsByDay', 'day', 'signup_tally', `${signupSum}, 0`, `AND dimension = 'plan'`),
  sumsSql('requestsByEndpoint', 'endpoint', 'usage', REQUEST_SUMS),
  sumsSql('requestsByDay', 'day', 'usage', REQUEST_SUMS),
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
  ${pageSql('usage', `${REQUEST_SUMS}, 0`)} UNION ALL
  ${pageSql('signup_tally', `0, 0, ${signupSum}`, `AND dimension = 'plan'`)}`

/** A part of the summary, a value in it ('' for none, or a day), and its signups, or its requests and errors. */
type SumRow = readonly [part: keyof SummaryCounts, value: string, count: number, errors: number]

function toSummary(rows: readonly SumRow[]): SummaryCounts {
  const of = (part: SumRow[0]) => rows.filter((row) => row[0] === part)
  return {
    signupsByPlan: of('signupsByPlan').map(([, plan, signups]) => ({ plan: plan || undefined, signups })),
    signupsByCountry: of('signupsByCountry')
      .map(([, country, signups]) => ({ country: country || undefined, signups })),
    signupsByDay: of('signupsByDay').map(([, day, signups]) => ({ day, signups })),
    requestsByEndpoint: of('requestsByEndpoint')
      .map(([, endpoint, requests, errors]) => ({ endpoint, requests, errors })),
    requestsByDay: of('requestsByDay').map(([, day, requests, errors]) => ({ day, requests, errors })),
  }
}

type PartnerDayRow = readonly [
  partner: string,
  day: string,
  requests: number,
  errors: number,
  signups: number,
]

/** Adds up rows to one for each partner and day, in order. */
function mergePartnerDays(counts: readonly PartnerDayRow[]): PartnerDay[] {
  const rows = counts.toSorted((a, b) => compare(a[0], b[0]) || compare(a[1], b[1]))
  const merged: { -readonly [Member in keyof PartnerDay]: PartnerDay[Member] }[] = []
  for (const [partner, day, requests, errors, signups] of rows) {
    const last = merged.at(-1)
    if (last?.partner === partner && last.day === day) {
      last.requests += requests
      last.errors += errors
      last.signups += signups
    } else merged.push({ partner, day, requests, errors, signups })
  }
  return merged
}

/** Compares ASCII, far faster than code points. */
function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
