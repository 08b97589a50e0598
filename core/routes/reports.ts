import { Problem } from '../http/problem.ts'
import { oneOf, repeatable, single } from '../http/query.ts'
import { ACTIVITY_TYPES } from '../ports/reports.ts'
import { isCalendarDay, resolvePeriod } from '../reports/period.ts'
import { cursorParameter, limitParameter, readPage } from './paging.ts'
import { defineGet } from './route.ts'

const day = single((text) => isCalendarDay(text) ? text : undefined, 'must be a date, YYYY-MM-DD', undefined)

export const reportSummary = defineGet({
  name: 'report-summary',
  path: '/partner/reports/summary',
  scope: 'read:partner-reports',
  summary: 'Get the report summary',
  parameters: { from: day, to: day },
  cacheBy: 'none',
  async handle({ query }, grant, { reports, endpoints }) {
    const period = resolvePeriod(query.from, query.to, grant.now)
    if (typeof period === 'string') {
      throw new Problem('invalid_parameter', { errors: [{ parameter: 'from', detail: period }] })
    }
    const [{ toWireSummary }, counts] = await Promise.all([
      import('../reports/summary.ts'),
      reports.summarise(grant.partner.slug, period.from, period.to),
    ])
    return { data: toWireSummary(period, counts, endpoints) }
  },
})

export const reportActivity = defineGet({
  name: 'report-activity',
  path: '/partner/reports/activity',
  scope: 'read:partner-reports',
  summary: 'List activity',
  parameters: {
    type: repeatable(oneOf(ACTIVITY_TYPES), `must be one of ${ACTIVITY_TYPES.join(', ')}`),
    limit: limitParameter(100, 20),
    cursor: cursorParameter,
  },
  cacheBy: 'none',
  async handle({ query }, grant, ports) {
    const { maskActivity } = await import('../reports/masking.ts')
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
