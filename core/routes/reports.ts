import * as v from 'valibot'
import { Problem } from '../http/problem.ts'
import { andThen } from '../lib/promise.ts'
import { compareCodePoints } from '../lib/text.ts'
import { ACTIVITY_TYPES, type SummaryCounts } from '../ports/reports.ts'
import { maskActivity } from '../reports/masking.ts'
import { daysIn, isCalendarDay, type Period, resolvePeriod } from '../reports/period.ts'
import * as input from '../schemas/inputs.ts'
import type { ReportSummary } from '../wire.ts'
import { readPage } from './paging.ts'
import { defineGet, type Endpoint } from './route.ts'

const day = (description: string) =>
  v.optional(input.form(
    'must be a date, YYYY-MM-DD',
    { description, format: 'date', maxLength: 10, examples: ['2026-11-01'] },
    (text) => isCalendarDay(text) ? text : undefined,
  ))

export const reportSummary = defineGet({
  name: 'report-summary',
  path: '/partner/reports/summary',
  scope: 'read:partner-reports',
  summary: 'Get the report summary',
  parameters: {
    from: day('First day, in UTC.'),
    to: day('Last day, in UTC; a period has at most 366 days.'),
  },
  cacheBy: 'none',
  check({ query: { from, to } }, errors, { now }) {
    const period = resolvePeriod(from, to, now)
    if (typeof period !== 'string') return period
    throw new Problem('invalid_parameter', { errors: [...errors, { parameter: 'from', detail: period }] })
  },
  handle({ checked: period }, grant, { reports, endpoints }) {
    const counts = reports.summarise(grant.partner.slug, period.from, period.to)
    return andThen(counts, (counts) => ({ data: toWireSummary(period, counts, endpoints) }))
  },
})

/** Rows with a count, largest first; equal ones by name, those without one last. */
function ranked<T>(rows: readonly T[], count: (row: T) => number, name: (row: T) => string | null): T[] {
  return rows.filter((row) => count(row) > 0).sort((a, b) => {
    return count(b) - count(a) || compareNames(name(a), name(b))
  })
}

function compareNames(one: string | null, other: string | null): number {
  if (one !== null && other !== null) return compareCodePoints(one, other)
  return Number(one === null) - Number(other === null)
}

/** The summary as the service answers it: a row for every day, and endpoints by their paths. */
export function toWireSummary(
  period: Period,
  counts: SummaryCounts,
  endpoints: readonly Endpoint[],
): ReportSummary {
  const signupsOn = new Map(counts.signupsByDay.map(({ day, signups }) => [day, signups]))
  const requestsOn = new Map(counts.requestsByDay.map((row) => [row.day, row]))
  const daily = daysIn(period).map((date) => ({
    date,
    signups: signupsOn.get(date) ?? 0,
    requests: requestsOn.get(date)?.requests ?? 0,
    errors: requestsOn.get(date)?.errors ?? 0,
  }))
  const endpointNamed = new Map(endpoints.map((endpoint) => [endpoint.name, endpoint]))
  return {
    period: { from: period.from, to: period.to },
    signups: {
      total: daily.reduce((sum, { signups }) => sum + signups, 0),
      by_plan: ranked(
        counts.signupsByPlan.map(({ plan = null, signups }) => ({ plan, signups })),
        ({ signups }) => signups,
        ({ plan }) => plan,
      ),
      by_country: ranked(
        counts.signupsByCountry.map(({ country = null, signups }) => ({ country, signups })),
        ({ signups }) => signups,
        ({ country }) => country,
      ),
    },
    requests: {
      total: daily.reduce((sum, { requests }) => sum + requests, 0),
      errors: daily.reduce((sum, { errors }) => sum + errors, 0),
      by_endpoint: ranked(
        counts.requestsByEndpoint.flatMap(({ endpoint: name, requests, errors }) => {
          // Another release may have counted an endpoint that this one does not have.
          const endpoint = endpointNamed.get(name)
          return endpoint === undefined
            ? []
            : [{ method: endpoint.method, path: endpoint.path, requests, errors }]
        }),
        ({ requests }) => requests,
        ({ path }) => path,
      ),
    },
    daily,
  }
}

export const reportActivity = defineGet({
  name: 'report-activity',
  path: '/partner/reports/activity',
  scope: 'read:partner-reports',
  summary: 'List activity',
  parameters: {
    type: input.repeatable(
      'Types of activity, any of these.',
      v.picklist(ACTIVITY_TYPES, `must be one of ${ACTIVITY_TYPES.join(', ')}`),
    ),
    limit: input.limit('How many rows a page has.', 100, 20),
    cursor: input.cursor,
  },
  cacheBy: 'none',
  handle({ query }, grant, ports) {
    const partner = grant.partner.slug
    const types = [...new Set(query.type)].sort()
    return readPage(ports.cursors, query, {
      partner,
      identity: ['activity', types],
      read(place, limit) {
        const start = place && { at: Number(place[0]), id: place[1] }
        return ports.reports.listActivity(partner, { types, after: start, limit }, grant.now)
      },
      positionOf: ({ at, id }) => [at, id],
      present: maskActivity,
    })
  },
})
