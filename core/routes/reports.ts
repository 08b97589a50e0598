import {
  array,
  check,
  metadata,
  nullable,
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
import { ACTIVITY_TYPES, type ActivityType } from '../reports/activity.ts'
import { daysOf, isDay, type Period, periodOf } from '../reports/period.ts'
import { redact } from '../reports/redact.ts'
import type { SummaryCounts } from '../reports/summary.ts'
import { cursorParameter, limitParameter, pageShape, readPage } from './paging.ts'
import { defineRoute, type Endpoint, type Route } from './route.ts'
import { countShape, formShape, instantShape, slugShape, textShape } from './shapes.ts'

const day = pipe(
  string(),
  check(isDay, 'must be a date, YYYY-MM-DD'),
  metadata({ format: 'date', maxLength: 10, examples: ['2026-11-01'] }),
)
const dateShape = (description: string) =>
  pipe(string(), metadata({ description, format: 'date', maxLength: 10, examples: ['2026-11-01'] }))
const counted = {
  requests: countShape('Requests of live keys.', 1840),
  errors: countShape('Those of them that were answered with 400 or above.', 12),
}
const signupCount = countShape('Signups of live keys.', 9)

const summaryShape = pipe(
  strictObject({
    period: pipe(
      strictObject({ from: dateShape('First day.'), to: dateShape('Last day.') }),
      metadata({ description: 'What was counted, in UTC.' }),
    ),
    signups: strictObject({
      total: signupCount,
      by_plan: pipe(
        array(
          strictObject({ plan: nullable(slugShape('Slug of the plan.', 'starter')), signups: signupCount }),
        ),
        metadata({ description: 'The most first.', maxItems: 100_000 }),
      ),
      by_country: pipe(
        array(
          strictObject({
            country: nullable(formShape('ISO 3166-1 alpha-2.', 'DE', '^[A-Z]{2}$', 2)),
            signups: signupCount,
          }),
        ),
        metadata({ description: 'The most first.', maxItems: 300 }),
      ),
    }),
    requests: strictObject({
      total: counted.requests,
      errors: counted.errors,
      by_endpoint: pipe(
        array(
          strictObject({
            method: pipe(picklist(['GET', 'POST']), metadata({ description: 'HTTP method.' })),
            path: textShape('Path with `{slug}` for a parameter.', '/service/public/profiles', 200),
            ...counted,
          }),
        ),
        metadata({ description: 'The most first.', maxItems: 100 }),
      ),
    }),
    daily: pipe(
      array(strictObject({ date: dateShape('The day, in UTC.'), signups: signupCount, ...counted })),
      metadata({ description: 'A row for every day of the period.', maxItems: 366 }),
    ),
  }),
  metadata({ title: 'ReportSummary', description: 'What a period held, counted.' }),
)

export const reportSummary: Route = defineRoute({
  name: 'report-summary',
  access: 'key',
  method: 'GET',
  path: '/partner/reports/summary',
  scope: 'read:partner-reports',
  summary: 'Partner report summary',
  description: 'Signups and requests of a period, counted. Only what live keys did counts.',
  parameters: {
    from: single('text', day, undefined, 'First day, in UTC'),
    to: single('text', day, undefined, 'Last day, in UTC; at most 366 days are told'),
  },
  reply: object({ data: summaryShape }),
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

const row = {
  id: formShape('Names the row.', 'act_01J8ZQ4M7X', '^act_', 200),
  occurred_at: instantShape('When it happened.', '2026-11-20T09:00:00.000Z'),
}
const keySubject = {
  key_id: formShape('Public id of the key.', 'Zt81mK0qWv3B', '^[0-9A-Za-z]{12}$', 12),
  hint: formShape('Its last four characters.', '…9xQ2', '^…[0-9A-Za-z]{4}$', 5),
}

/** What happened, with the sentence that the reference says of it. */
function kind<const T extends readonly ActivityType[]>(types: T) {
  return pipe(picklist(types), metadata({ description: 'What happened.', examples: [types[0]] }))
}

const activityShape = pipe(
  variant('type', [
    strictObject({
      ...row,
      type: kind(['signup.created']),
      subject: strictObject({
        signup_id: formShape('Id of the signup.', 'sgn_5K0M2N8P4QRS6TVW7XYZ', '^sgn_', 80),
        email: textShape('Masked.', 'j***@e***.com', 254),
        name: textShape('Initials.', 'J. D.', 200),
        country: nullable(formShape('ISO 3166-1 alpha-2.', 'DE', '^[A-Z]{2}$', 2)),
        plan: nullable(slugShape('Slug of the plan.', 'starter')),
      }),
    }),
    strictObject({
      ...row,
      type: kind(['key.issued', 'key.rotated', 'key.revoked', 'key.disabled', 'key.enabled', 'key.expired']),
      subject: strictObject(keySubject),
    }),
    strictObject({
      ...row,
      type: kind(['scope.granted', 'scope.removed']),
      subject: strictObject({
        ...keySubject,
        scope: pipe(picklist(SCOPES), metadata({ description: 'The scope.', examples: ['read:profiles'] })),
      }),
    }),
    strictObject({
      ...row,
      type: kind(['module.activated', 'module.deactivated']),
      subject: strictObject({
        module: pipe(
          picklist(MODULE_NAMES),
          metadata({ description: 'The module.', examples: ['profiles'] }),
        ),
      }),
    }),
  ]),
  metadata({ title: 'Activity', description: 'Something that happened. Nothing personal stands in it.' }),
)

export const reportActivity: Route = defineRoute({
  name: 'report-activity',
  access: 'key',
  method: 'GET',
  path: '/partner/reports/activity',
  scope: 'read:partner-reports',
  summary: 'Redacted partner report activity',
  description: 'What happened, newest first: masked, so that nothing personal leaves the service.',
  parameters: {
    type: repeatable(
      picklist(ACTIVITY_TYPES, `must be one of ${ACTIVITY_TYPES.join(', ')}`),
      'What happened: any of these',
    ),
    limit: limitParameter(100, 20, 'How many rows a page has'),
    cursor: cursorParameter,
  },
  reply: object({
    data: pipe(array(activityShape), metadata({ maxItems: 100 })),
    page: pageShape,
  }),
  limits: ['key'],
  dependsOn: 'nothing',
  handle({ query }, grant, ports) {
    const partner = grant.partner.slug
    const types = [...new Set(query.type)].sort()
    return readPage(ports.cursors, query, {
      partner,
      of: ['activity', types],
      read(place, limit) {
        const start = place && { at: Number(place[0]), id: place[1] }
        return ports.reports.listActivity(partner, { types, after: start, limit }, grant.now)
      },
      placeOf: ({ at, id }) => [at, id],
      present: redact,
    })
  },
})
