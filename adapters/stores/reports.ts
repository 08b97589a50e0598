/** Reports as all stores make them: the rows of the activity report, and the sums of the summary. */
import { compareCodePoints } from '../../core/lib/text.ts'
import type { Key, Module, Scope } from '../../core/model.ts'
import type { AuditEntry } from '../../core/ports/audit.ts'
import type { Activity, PartnerDay, SummaryCounts } from '../../core/ports/reports.ts'
import type { Signup } from '../../core/ports/signups.ts'

/** Something that lists show newest first. */
interface Dated {
  readonly at: number
  readonly id: string
}

export function newestFirst(a: Dated, b: Dated): number {
  return b.at - a.at || compareCodePoints(a.id, b.id)
}

/** Replaces `sgn_` in the id of a signup. */
export const SIGNUP_PREFIX = 'act_'

/** Precedes the id of a key. Its lower-case letters keep it apart from drawn ids. */
export const EXPIRY_PREFIX = 'act_expired_'

/** The row of an audit entry whose type is one of activity. */
export function activityFromEntry(
  { id, at, type, keyId, subject, after }: Pick<
    AuditEntry,
    'id' | 'at' | 'type' | 'keyId' | 'subject' | 'after'
  >,
): Activity {
  if (type === 'module.activated' || type === 'module.deactivated') {
    return { id, at, type, module: subject as Module }
  }
  const { hint, environment }: Pick<Key, 'hint' | 'environment'> = JSON.parse(after!)
  const key = { keyId: keyId!, hint, environment }
  if (type === 'scope.granted' || type === 'scope.removed') {
    return { id, at, type, ...key, scope: subject as Scope }
  }
  return { id, at, type: type as Exclude<Activity['type'], 'signup.created'> & `key.${string}`, ...key }
}

export function activityFromSignup(signup: Signup): Activity {
  return { id: SIGNUP_PREFIX + signup.id.slice(4), at: signup.createdAt, type: 'signup.created', signup }
}

/** The row of a key that ended at `at`. */
export function activityFromExpiry(
  { id, hint, environment }: Pick<Key, 'id' | 'hint' | 'environment'>,
  at: number,
): Activity {
  return { id: EXPIRY_PREFIX + id, at, type: 'key.expired', keyId: id, hint, environment }
}

/** A part of the summary, a value in it ('' for none, or a day), and its signups, or its requests and errors. */
export type SumRow = readonly [part: keyof SummaryCounts, value: string, count: number, errors: number]

export function toSummary(rows: readonly SumRow[]): SummaryCounts {
  const of = (part: SumRow[0]) => rows.filter((row) => row[0] === part)
  return {
    signupsByPlan: of('signupsByPlan').map(([, plan, signups]) => ({ plan: plan || undefined, signups })),
    signupsByCountry: of('signupsByCountry')
      .map(([, country, signups]) => ({ country: country || undefined, signups })),
    signupsByDay: of('signupsByDay').map(([, day, signups]) => ({ day, signups })),
    requestsByEndpoint: of('requestsByEndpoint')
      .map(([, endpoint, requests, errors]) => ({ endpoint, requests, errors })),
    requestsByDay: of('requestsByDay').map(([, day, requests, errors]) => ({ day, requests, errors })),
  }
}

export type PartnerDayRow = readonly [
  partner: string,
  day: string,
  requests: number,
  errors: number,
  signups: number,
]

/** Adds up rows to one for each partner and day, in order. */
export function mergePartnerDays(counts: readonly PartnerDayRow[]): PartnerDay[] {
  const rows = counts.toSorted((a, b) => compare(a[0], b[0]) || compare(a[1], b[1]))
  const merged: { -readonly [Member in keyof PartnerDay]: PartnerDay[Member] }[] = []
  for (const [partner, day, requests, errors, signups] of rows) {
    const last = merged.at(-1)
    if (last?.partner === partner && last.day === day) {
      last.requests += requests
      last.errors += errors
      last.signups += signups
    } else merged.push({ partner, day, requests, errors, signups })
  }
  return merged
}

/** Compares ASCII, far faster than code points. */
function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}
