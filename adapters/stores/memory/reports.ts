import { createLruCache } from '../../../core/lib/lru.ts'
import type { Synchronous } from '../../../core/lib/promise.ts'
import { utcDay } from '../../../core/lib/time.ts'
import type { Activity, Reports, UsageCount } from '../../../core/ports/reports.ts'
import {
  activityFromEntry,
  activityFromExpiry,
  activityFromSignup,
  AUDITED_ACTIVITY_TYPES,
  newestFirst,
} from '../reports.ts'
import type { MemoryAuditLog } from './audit.ts'
import type { PartnersAndKeys } from './partners-and-keys.ts'
import type { Signups } from './signups.ts'

/** Batches of counts that are remembered: far more than a process has on their way. */
const maxBatches = 1000

/** What the reports of a memory store are made from, counted and sorted anew for each. */
export interface ReportSources {
  readonly facts: Pick<PartnersAndKeys, 'keys'>
  readonly signups: Pick<Signups, 'all'>
  readonly trail: Pick<MemoryAuditLog, 'entries' | 'revokedAt'>
}

export function createReports({ facts, signups, trail }: ReportSources): Synchronous<Reports> {
  const usage = new Map<string, UsageCount>()
  const batches = createLruCache<true>(maxBatches)
  /** Nothing before this day is counted any more. */
  let countedFrom = ''

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
      return key.partner === partner && at < end ? [activityFromExpiry(key, at)] : []
    })
  }

  return {
    recordUsage(counts, batch, keepFrom = '') {
      if (keepFrom > countedFrom) {
        countedFrom = keepFrom
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
      const within = (day: string) => from <= day && day <= to && day >= countedFrom
      const signupsInRange = liveSignups(partner)
        .map((signup) => ({ ...signup, day: utcDay(signup.createdAt), signups: 1 }))
        .filter(({ day }) => within(day))
      const usageInRange = [...usage.values()].filter((count) =>
        count.partner === partner && within(count.day)
      )
      return {
        signupsByPlan: sumBy(signupsInRange, 'plan', 'signups'),
        signupsByCountry: sumBy(signupsInRange, 'country', 'signups'),
        signupsByDay: sumBy(signupsInRange, 'day', 'signups'),
        requestsByEndpoint: sumBy(usageInRange, 'endpoint', 'requests', 'errors'),
        requestsByDay: sumBy(usageInRange, 'day', 'requests', 'errors'),
      }
    },

    listActivity(partner, { types, after, limit }, now) {
      const audited = trail.entries.filter((entry) =>
        entry.partner === partner && (AUDITED_ACTIVITY_TYPES as readonly string[]).includes(entry.type)
      )
      const rows: Activity[] = [
        ...liveSignups(partner).map(activityFromSignup),
        ...audited.map(activityFromEntry),
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
function sumBy<Row, By extends keyof Row, Count extends keyof Row>(
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
