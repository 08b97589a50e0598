import { compareCodePoints } from '../lib/text.ts'
import type { SummaryCounts } from '../ports/reports.ts'
import type { RecordedEndpoint } from '../ports/store.ts'
import type { ReportSummary } from '../wire.ts'
import { daysIn, type Period } from './period.ts'

/** The summary as the service answers it: a row for every day, and endpoints by their paths. */
export function toWireSummary(
  period: Period,
  counts: SummaryCounts,
  endpoints: readonly Pick<RecordedEndpoint, 'name' | 'method' | 'path'>[],
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
