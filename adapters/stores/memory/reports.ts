import { createBoundedMap } from '../../../core/cache/bounded.ts'
import type { Reports } from '../../../core/ports.ts'
import type { Activity } from '../../../core/reports/activity.ts'
import { dayOf, type UsageCount } from '../../../core/reports/usage.ts'
import { activityOf, AUDITED_ACTIVITY, expiryOf, newestFirst, signupActivity } from '../newest.ts'
import type { Synchronous } from '../answers.ts'
import type { Facts } from './facts.ts'
import type { Signups } from './signups.ts'
import type { Trail } from './trail.ts'

/** Batches of counts that are remembered: far more than a process has on their way. */
const maxBatches = 1000

/** What the reports of a memory store are made from, counted and sorted anew for each. */
export interface Sources {
  readonly facts: Pick<Facts, 'keys'>
  readonly signups: Pick<Signups, 'all'>
  readonly trail: Pick<Trail, 'entries' | 'revokedAt'>
}

export function createReports({ facts, signups, trail }: Sources): Synchronous<Reports> {
  const usage = new Map<string, UsageCount>()
  const batches = createBoundedMap<true>(maxBatches)
  /** Nothing before this day is counted any more. */
  let keptFrom = ''

  function liveSignups(partner: string) {
    return [...signups.all.values()].filter((signup) =>
      signup.partner === partner && signup.environment === 'live'
    )
  }

  function expiries(partner: string): Activity[] {
    return [...facts.keys.values()].flatMap((key) => {
      const at = Math.min(key.expiresAt ?? Infinity, key.retiresAt ?? Infinity)
      // A key whose revocation was not noted was revoked before there was a trail.
      const end = key.state === 'revoked' ? trail.revokedAt(key.id) ?? -Infinity : Infinity
      return key.partner === partner && at < end ? [expiryOf(key, at)] : []
    })
  }

  return {
    recordUsage(counts, batch, keepFrom = '') {
      if (keepFrom > keptFrom) {
        keptFrom = keepFrom
        for (const [key, { day }] of usage) if (day < keepFrom) usage.delete(key)
      }
      if (batches.get(batch) !== undefined) return
      batches.set(batch, true)
      for (const count of counts) {
        const key = [count.partner, count.day, count.endpoint].join('\n')
        const { requests = 0, errors = 0 } = usage.get(key) ?? {}
        usage.set(key, { ...count, requests: requests + count.requests, errors: errors + count.errors })
      }
    },

    summarise(partner, from, to) {
      const within = (day: string) => from <= day && day <= to && day >= keptFrom
      const kept = liveSignups(partner)
        .map((signup) => ({ ...signup, day: dayOf(signup.createdAt), signups: 1 }))
        .filter(({ day }) => within(day))
      const counted = [...usage.values()].filter((count) => count.partner === partner && within(count.day))
      return {
        signupsByPlan: sums(kept, 'plan', 'signups'),
        signupsByCountry: sums(kept, 'country', 'signups'),
        signupsByDay: sums(kept, 'day', 'signups'),
        requestsByEndpoint: sums(counted, 'endpoint', 'requests', 'errors'),
        requestsByDay: sums(counted, 'day', 'requests', 'errors'),
      }
    },

    listActivity(partner, { types, after, limit }, now) {
      const audited = trail.entries.filter((entry) =>
        entry.partner === partner && (AUDITED_ACTIVITY as readonly string[]).includes(entry.type)
      )
      const rows: Activity[] = [
        ...liveSignups(partner).map(signupActivity),
        ...audited.map(activityOf),
        ...expiries(partner),
      ]
      return rows
        .filter(({ at, type }) => at <= now && (types.length === 0 || types.includes(type)))
        .filter((row) => after === undefined || newestFirst(after, row) < 0)
        .sort(newestFirst)
        .slice(0, limit)
    },
  }
}

/** Rows of the same `by` as one, with their counts added up. */
function sums<Row, By extends keyof Row, Count extends keyof Row>(
  rows: readonly Row[],
  by: By,
  ...counts: Count[]
): (Pick<Row, By> & Record<Count, number>)[] {
  const groups = Map.groupBy(rows, (row) => row[by])
  return Array.from(groups, ([value, members]) => {
    const added = counts.map((count) => [count, members.reduce((sum, row) => sum + Number(row[count]), 0)])
    return { [by]: value, ...Object.fromEntries(added) }
  })
}
