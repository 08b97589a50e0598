import {
  array,
  boolean,
  check,
  integer,
  literal,
  maxValue,
  minValue,
  nullable,
  number,
  object,
  picklist,
  pipe,
  strictObject,
  string,
  variant,
} from 'valibot'
import { after } from '../after.ts'
import { compareCodePoints } from '../content/fold.ts'
import { repeatable, single } from '../http/parameters.ts'
import { Problem } from '../http/problem.ts'
import { MODULE_NAMES } from '../policy/modules.ts'
import { SCOPES } from '../policy/scopes.ts'
import { ACTIVITY_TYPES } from '../reports/activity.ts'
import { daysOf, isDay, type Period, periodOf } from '../reports/period.ts'
import { redact } from '../reports/redact.ts'
import type { SummaryCounts } from '../reports/summary.ts'
import { VERSION } from '../version.ts'
import { defineRoute, type Endpoint, type Route } from './route.ts'

const day = pipe(string(), check(isDay, 'must be a date, YYYY-MM-DD'))
const counted = { requests: number(), errors: number() }

export const reportSummary: Route = defineRoute({
  name: 'report-summary',
  access: 'key',
  method: 'GET',
  path: '/partner/reports/summary',
  scope: 'read:partner-reports',
  summary: 'Partner report summary',
  parameters: {
    from: single('text', day, undefined, 'First day, in UTC'),
    to: single('text', day, undefined, 'Last day, in UTC; at most 366 days are told'),
  },
  reply: object({
    data: strictObject({
      period: strictObject({ from: string(), to: string() }),
      signups: strictObject({
        total: number(),
        by_plan: array(strictObject({ plan: nullable(string()), signups: number() })),
        by_country: array(strictObject({ country: nullable(string()), signups: number() })),
      }),
      requests: strictObject({
        total: number(),
        errors: number(),
        by_endpoint: array(strictObject({ method: string(), path: string(), ...counted })),
      }),
      daily: array(strictObject({ date: string(), signups: number(), ...counted })),
    }),
  }),
  limits: ['key'],
  dependsOn: 'nothing',
  handle({ query }, grant, { reports, endpoints }) {
    const period = periodOf(query.from, query.to, grant.now)
    if (typeof period === 'string') {
      throw new Problem('invalid_parameter', { errors: [{ parameter: 'from', detail: period }] })
    }
    const counts = reports.summarise(grant.partner.slug, period.from, period.to)
    return after(counts, (counts) => ({ data: presentSummary(period, counts, endpoints) }))
  },
})

/** Rows of a `by_…` list: those that count something, the most first; of equal ones by name, those without last. */
function ranked<T>(rows: readonly T[], count: (row: T) => number, name: (row: T) => string | null): T[] {
  return rows.filter((row) => count(row) > 0).sort((a, b) => {
    const [one, other] = [name(a), name(b)]
    return count(b) - count(a) ||
      (one === null || other === null
        ? Number(one === null) - Number(other === null)
        : compareCodePoints(one, other))
  })
}

function presentSummary(period: Period, counts: SummaryCounts, endpoints: readonly Endpoint[]) {
  const signupsOn = new Map(counts.signupsByDay.map(({ day, signups }) => [day, signups]))
  const requestsOn = new Map(counts.requestsByDay.map((row) => [row.day, row]))
  const daily = daysOf(period).map((date) => ({
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
          // A replica of another release may have counted what this one does not have.
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

const limitMessage = 'must be an integer from 1 to 100'
const row = { id: string(), occurred_at: string() }
const keySubject = { key_id: string(), hint: string() }

export const reportActivity: Route = defineRoute({
  name: 'report-activity',
  access: 'key',
  method: 'GET',
  path: '/partner/reports/activity',
  scope: 'read:partner-reports',
  summary: 'Redacted partner report activity',
  parameters: {
    type: repeatable(
      picklist(ACTIVITY_TYPES, `must be one of ${ACTIVITY_TYPES.join(', ')}`),
      'What happened: any of these',
    ),
    limit: single(
      'integer',
      pipe(
        number(limitMessage),
        integer(limitMessage),
        minValue(1, limitMessage),
        maxValue(100, limitMessage),
      ),
      20,
      'How many rows a page has',
    ),
    cursor: single('text', string(), undefined, 'next_cursor of the page before'),
  },
  reply: object({
    data: array(variant('type', [
      strictObject({
        ...row,
        type: literal('signup.created'),
        subject: strictObject({
          signup_id: string(),
          email: string(),
          name: string(),
          country: nullable(string()),
          plan: nullable(string()),
        }),
      }),
      strictObject({
        ...row,
        type: picklist([
          'key.issued',
          'key.rotated',
          'key.revoked',
          'key.disabled',
          'key.enabled',
          'key.expired',
        ]),
        subject: strictObject(keySubject),
      }),
      strictObject({
        ...row,
        type: picklist(['scope.granted', 'scope.removed']),
        subject: strictObject({ ...keySubject, scope: picklist(SCOPES) }),
      }),
      strictObject({
        ...row,
        type: picklist(['module.activated', 'module.deactivated']),
        subject: strictObject({ module: picklist(MODULE_NAMES) }),
      }),
    ])),
    page: strictObject({ limit: number(), has_more: boolean(), next_cursor: nullable(string()) }),
  }),
  limits: ['key'],
  dependsOn: 'nothing',
  handle({ query }, grant, ports) {
    const partner = grant.partner.slug
    const types = [...new Set(query.type)].sort()
    const bound = JSON.stringify([VERSION, partner, 'activity', types])
    const position = query.cursor === undefined ? undefined : ports.cursors.open(bound, query.cursor)
    if (query.cursor !== undefined && position === undefined) throw new Problem('invalid_cursor')
    const [at, id] = position ?? []
    const start = at === undefined || id === undefined ? undefined : { at: Number(at), id: String(id) }
    const found = ports.reports.listActivity(
      partner,
      { types, after: start, limit: query.limit + 1 },
      grant.now,
    )
    return after(found, (rows) => {
      const shown = rows.slice(0, query.limit)
      const last = rows.length > query.limit ? shown.at(-1) : undefined
      const next = last === undefined ? null : ports.cursors.seal(bound, [last.at, last.id])
      return {
        data: shown.map(redact),
        page: { limit: query.limit, has_more: next !== null, next_cursor: next },
      }
    })
  },
})
