import { endOf } from '../../../core/keys/lifecycle.ts'
import { createLruCache } from '../../../core/lib/lru.ts'
import { compareCodePoints } from '../../../core/lib/text.ts'
import { utcDay } from '../../../core/lib/time.ts'
import type { Key } from '../../../core/model.ts'
import type { AuditEntry } from '../../../core/ports/audit.ts'
import {
  type Activity,
  ACTIVITY_TYPES,
  PROBLEM_RETENTION_MS,
  PROBLEMS_PER_HOUR,
  type RecordedProblem,
  type Reports,
  type UsageCount,
} from '../../../core/ports/reports.ts'
import type { Signup } from '../../../core/ports/signups.ts'
import {
  activityFromEntry,
  activityFromExpiry,
  activityFromSignup,
  mergePartnerDays,
  newestFirst,
  type SumRow,
  toSummary,
} from '../reports.ts'

/** Batches of counts that are remembered: far more than a process has in flight. */
const maxBatches = 1000

type CountedSignup = Pick<Signup, 'partner' | 'environment' | 'createdAt' | 'country' | 'plan'>

/** Reports, computed anew for each request. */
export function createReports(
  keys: ReadonlyMap<string, Key>,
  signups: ReadonlyMap<string, Signup>,
  removed: readonly CountedSignup[],
  entries: readonly AuditEntry[],
) {
  /** By day, key, endpoint, partner and environment, in one text. */
  const usage = new Map<string, UsageCount>()
  const batches = createLruCache<true>(maxBatches)
  /** By key and hour, newest first: a write touches few of them. */
  const problems = new Map<string, RecordedProblem[]>()
  /** Earlier days are not counted any more. */
  let countedFrom = ''

  const isLive = ({ environment }: CountedSignup) => environment === 'live'
  const countedSignups = () => [...signups.values(), ...removed].filter(isLive)
  const liveCounts = () => [...usage.values()].filter(({ environment }) => environment === 'live')
  const isIncluded = (day: string, from: string, to: string) => from <= day && day <= to && day >= countedFrom

  return {
    recordUsage(counts, batch, keepFrom = '', added = []) {
      if (keepFrom !== '') {
        const until = Date.now() - PROBLEM_RETENTION_MS
        for (const [hour, [latest]] of problems) if (latest!.at <= until) problems.delete(hour)
      }
      if (keepFrom > countedFrom) {
        countedFrom = keepFrom
        for (const [key, { day }] of usage) if (day < keepFrom) usage.delete(key)
      }
      if (batches.get(batch) !== undefined) return
      batches.set(batch, true)
      for (const count of counts) {
        const { day, keyId, endpoint, partner, environment } = count
        const key = [day, keyId, endpoint, partner, environment].join('\n')
        const { requests = 0, errors = 0 } = usage.get(key) ?? {}
        usage.set(key, { ...count, requests: requests + count.requests, errors: errors + count.errors })
      }
      for (const [hour, rows] of Map.groupBy(added, hourOf)) {
        const all = [...problems.get(hour) ?? [], ...rows].sort(latestFirst)
        problems.set(hour, all.slice(-PROBLEMS_PER_HOUR))
      }
    },

    listProblems({ since, ...filter }, after, limit) {
      const given = Object.entries(filter).filter(([, value]) => value !== undefined)
      return Array.from(
        problems.values(),
        (ofHour) =>
          ofHour.filter((problem) =>
            problem.at > since && (after === undefined || latestFirst(after, problem) < 0) &&
            given.every(([name, value]) => problem[name as keyof typeof filter] === value)
          ),
      ).flat().sort(latestFirst).slice(0, limit)
    },

    summarise: (partner, from, to) =>
      summaryOf(
        countedSignups().filter((signup) =>
          signup.partner === partner && isIncluded(utcDay(signup.createdAt), from, to)
        ),
        liveCounts().filter((count) => count.partner === partner && isIncluded(count.day, from, to)),
      ),

    summarisePartners(from, to, after = '', limit) {
      const days = mergePartnerDays([
        ...liveCounts().map(({ partner, day, requests, errors }) =>
          [partner, day, requests, errors, 0] as const
        ),
        ...countedSignups().map(({ partner, createdAt }) => [partner, utcDay(createdAt), 0, 0, 1] as const),
      ]).filter(({ partner, day }) => partner > after && isIncluded(day, from, to))
      const partners = [...new Set(days.map(({ partner }) => partner))].slice(0, limit)
      return days.filter(({ partner }) => partners.includes(partner))
    },

    keyUsage(keyIds, from, to) {
      const listed = keyIds && new Set(keyIds)
      const inOrder = [...usage.keys()].sort().map((key) => usage.get(key)!)
      return inOrder.flatMap(({ keyId, day, endpoint, requests, errors }) =>
        keyId !== undefined && from <= day && day <= to && (listed === undefined || listed.has(keyId))
          ? [{ keyId, day, endpoint, requests, errors }]
          : []
      )
    },

    listActivity(partner, { types, after, limit }, now) {
      const audited = entries.filter((entry) =>
        entry.partner === partner && (ACTIVITY_TYPES as readonly string[]).includes(entry.type)
      )
      const rows: Activity[] = [
        ...[...signups.values()].filter((signup) => isLive(signup) && signup.partner === partner)
          .map(activityFromSignup),
        ...audited.map(activityFromEntry),
        ...expiriesOf([...keys.values()].filter((key) => key.partner === partner), entries),
      ]
      return rows
        .filter(({ at, type }) => at <= now && (types.length === 0 || types.includes(type)))
        .filter((row) => after === undefined || newestFirst(after, row) < 0)
        .sort(newestFirst)
        .slice(0, limit)
    },
  } satisfies Reports
}

function latestFirst(a: Pick<RecordedProblem, 'at' | 'id'>, b: typeof a): number {
  return b.at - a.at || compareCodePoints(b.id, a.id)
}

function hourOf({ keyId, at }: RecordedProblem): string {
  return `${keyId} ${Math.floor(at / 3_600_000)}`
}

function summaryOf(signups: readonly CountedSignup[], counts: readonly UsageCount[]) {
  const sums = new Map<string, SumRow>()
  const add = (part: SumRow[0], value: string, count: number, errors = 0) => {
    const [, , counted = 0, failed = 0] = sums.get(`${part} ${value}`) ?? []
    sums.set(`${part} ${value}`, [part, value, counted + count, failed + errors])
  }
  for (const { createdAt, plan = '', country = '' } of signups) {
    add('signupsByPlan', plan, 1)
    add('signupsByCountry', country, 1)
    add('signupsByDay', utcDay(createdAt), 1)
  }
  for (const { day, endpoint, requests, errors } of counts) {
    add('requestsByEndpoint', endpoint, requests, errors)
    add('requestsByDay', day, requests, errors)
  }
  return toSummary([...sums.values()])
}

function expiriesOf(keys: readonly Key[], entries: readonly AuditEntry[]): Activity[] {
  const revocations = entries.filter(({ type }) => type === 'key.revoked').toReversed()
  const revokedAt = new Map(revocations.map(({ keyId, at }) => [keyId, at]))
  return keys.flatMap((key) => {
    const at = endOf(key) ?? Infinity
    // A revocation without an audit entry is older than the audit log.
    const end = key.state === 'revoked' ? revokedAt.get(key.id) ?? -Infinity : Infinity
    return at < end ? [activityFromExpiry(key, at)] : []
  })
}
