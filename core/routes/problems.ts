import { parseJson } from '../lib/json.ts'
import { PROBLEM_RETENTION_MS } from '../ports/reports.ts'
import * as input from '../schemas/input-schemas.ts'
import { readPage } from './paging.ts'
import { defineGet } from './route.ts'

export const problems = defineGet({
  name: 'problems',
  path: '/developer/problems',
  summary: 'List problems',
  parameters: { limit: input.limit('How many rows a page has.', 100, 20), cursor: input.cursor },
  skipsQuotas: true,
  cacheBy: 'none',
  handle({ query }, { partner: { slug: partner }, key: { environment }, now }, { cursors, reports }) {
    const filter = { partner, environment, since: now - PROBLEM_RETENTION_MS }
    return readPage(cursors, query, {
      partner,
      identity: ['problems', environment],
      read: (place, limit) =>
        reports.listProblems(filter, place && { at: Number(place[0]), id: place[1] }, limit),
      positionOf: ({ at, id }) => [at, id],
      present: ({ record }) => parseJson(record),
    })
  },
})
