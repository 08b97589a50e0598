import { createLruCache } from '../../../core/lib/lru.ts'
import { compareCodePoints } from '../../../core/lib/text.ts'
import { utcDay } from '../../../core/lib/time.ts'
import type { Key } from '../../../core/model.ts'
import type { Activity, KeyUsage, PartnerDay, Reports } from '../../../core/ports/reports.ts'
import type { Signup } from '../../../core/ports/signups.ts'
import {
  activityFromEntry,
  activityFromExpiry,
  activityFromSignup,
  addUsage,
  AUDITED_ACTIVITY_TYPES,
  newestFirst,
  type SumRow,
  type Sums,
  toSummary,
} from '../reports.ts'
import type { createAuditLog } from './audit.ts'

/** Batches of counts that are remembered: far more than a process has in flight. */
const maxBatches = 1000

/** Reports, computed anew for each request. */
export function createReports(
  keys: ReadonlyMap<string, Key>,
  signups: ReadonlyMap<string, Signup>,
  { entries, revokedAt }: Pick<ReturnType<typeof createAuditLog>, 'entries' | 'revokedAt'>,
) {
  const usage: Sums = new Map()
  const keyUsage = new Map<string, KeyUsage>()
  const batches = createLruCache<true>(maxBatches)
  /** Earlier days are not counted any more. */
  let countedFrom = ''

  function liveSignups(partner?: string): Signup[] {
    return [...signups.values()].filter((signup) =>
      signup.environment === 'live' && (partner === undefined || signup.partner === partner)
    )
  }

  function expiries(partner: string): Activity[] {
    return [...keys.values()].flatMap((key) => {
      const at = Math.min(key.expiresAt ?? Infinity, key.retiresAt ?? Infinity)
      // A revocation without an audit entry is older than the audit log.
      const end = key.state === 'revoked' ? revokedAt(key.id) ?? -Infinity : Infinity
      return key.partner === partner && at < end ? [activityFromExpiry(key, at)] : []
    })
  }

  return {
    recordUsage(counts, batch, keepFrom = '') {
      if (keepFrom > countedFrom) {
        countedFrom = keepFrom
        for (const counts of [usage, keyUsage]) {
          for (const [key, { day }] of counts) if (day < keepFrom) counts.delete(key)
        }
      }
      if (batches.get(batch) !== undefined) return
      batches.set(batch, true)
      addUsage(usage, counts)
      for (const { keyId, day, endpoint, requests, errors } of counts) {
        if (keyId === undefined) continue
        const key = [day, keyId, endpoint].join('\n')
        const sum = keyUsage.get(key)
        keyUsage.set(key, {
          keyId,
          day,
          endpoint,
          requests: requests + (sum?.requests ?? 0),
          errors: errors + (sum?.errors ?? 0),
        })
      }
    },

    summarise(partner, from, to) {
      const sums = new Map<string, SumRow>()
      const add = (part: SumRow[0], value: string, count: number, errors = 0) => {
        const [, , counted = 0, failed = 0] = sums.get(`${part} ${value}`) ?? []
        sums.set(`${part} ${value}`, [part, value, counted + count, failed + errors])
      }
      const isIncluded = (day: string) => from <= day && day <= to && day >= countedFrom
      for (const { createdAt, plan = '', country = '' } of liveSignups(partner)) {
        const day = utcDay(createdAt)
        if (!isIncluded(day)) continue
        add('signupsByPlan', plan, 1)
        add('signupsByCountry', country, 1)
        add('signupsByDay', day, 1)
      }
      for (const { partner: owner, day, endpoint, requests, errors } of usage.values()) {
        if (owner !== partner || !isIncluded(day)) continue
        add('requestsByEndpoint', endpoint, requests, errors)
        add('requestsByDay', day, requests, errors)
      }
      return toSummary([...sums.values()])
    },

    summarisePartners(from, to, after = '', limit) {
      const rows = new Map<string, PartnerDay>()
      const add = (partner: string, day: string, requests: number, errors: number, signups: number) => {
        if (partner <= after || day < from || day > to || day < countedFrom) return
        const key = `${partner}\n${day}`
        const sum = rows.get(key) ?? { requests: 0, errors: 0, signups: 0 }
        rows.set(key, {
          partner,
          day,
          requests: sum.requests + requests,
          errors: sum.errors + errors,
          signups: sum.signups + signups,
        })
      }
      for (const { partner, day, requests, errors } of usage.values()) add(partner, day, requests, errors, 0)
      for (const { partner, createdAt } of liveSignups()) add(partner, utcDay(createdAt), 0, 0, 1)
      const partners = [...new Set(Array.from(rows.values(), ({ partner }) => partner))].sort()
      const listed = new Set(partners.slice(0, limit))
      return inOrder(rows).filter(({ partner }) => listed.has(partner))
    },

    keyUsage(keyIds, from, to) {
      const listed = keyIds && new Set(keyIds)
      return inOrder(keyUsage).filter(({ keyId, day }) =>
        from <= day && day <= to && (listed === undefined || listed.has(keyId))
      )
    },

    listActivity(partner, { types, after, limit }, now) {
      const audited = entries.filter((entry) =>
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
  } satisfies Reports
}

/** The rows in the order of their keys. */
function inOrder<T>(rows: ReadonlyMap<string, T>): T[] {
  return [...rows].sort(([one], [other]) => compareCodePoints(one, other)).map(([, row]) => row)
}
