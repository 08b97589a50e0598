/** The reports of a partner. The code that makes them is loaded with the first. */
import * as v from 'valibot'
import { Problem } from '../http/problem.ts'
import { ACTIVITY_TYPES } from '../ports/reports.ts'
import { isCalendarDay, resolvePeriod } from '../reports/period.ts'
import * as input from '../schemas/input-schemas.ts'
import { readPage } from './paging.ts'
import { defineGet } from './route.ts'

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
  async handle({ checked: period }, grant, { reports, endpoints }) {
    const { toWireSummary } = await import('../reports/summary.ts')
    const counts = await reports.summarise(grant.partner.slug, period.from, period.to)
    return { data: toWireSummary(period, counts, endpoints) }
  },
})

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
  async handle({ query }, grant, context) {
    const { maskActivity } = await import('../reports/masking.ts')
    const partner = grant.partner.slug
    const types = [...new Set(query.type)].sort()
    return await readPage(context.cursors, query, {
      partner,
      identity: ['activity', types],
      read(place, limit) {
        const start = place && { at: Number(place[0]), id: place[1] }
        return context.reports.listActivity(partner, { types, after: start, limit }, grant.now)
      },
      positionOf: ({ at, id }) => [at, id],
      present: maskActivity,
    })
  },
})
