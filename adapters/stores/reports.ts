/** Where pages of activity begin, in terms of the rows that they are made from. */
import { compareCodePoints } from '../../core/lib/text.ts'
import type { Key } from '../../core/model.ts'
import type { Module, Scope } from '../../core/policy/modules.ts'
import type { AuditEntry } from '../../core/ports/audit.ts'
import {
  type Activity,
  ACTIVITY_TYPES,
  type ActivityType,
  type SummaryCounts,
} from '../../core/ports/reports.ts'
import type { Signup } from '../../core/ports/signups.ts'

/** A place in an order of newest first: minus an instant, and an id. Rows after it are greater. */
export type KeysetPosition = readonly [recency: number, id: string]

/** What a page is made from, after a row of activity. */
export interface ActivityPositions {
  /** In the audit trail. */
  readonly entries: KeysetPosition
  /** Among signups. */
  readonly signups: KeysetPosition
  /** Among keys, by the end of their time. */
  readonly expiries: KeysetPosition
}

/** Before everything. */
export const FIRST_POSITION: KeysetPosition = [-Number.MAX_SAFE_INTEGER, '']

/** After every id. */
const maxId = '\u{10ffff}'

/**
 * @param after The last row of the page before.
 * @param now No page has what is later than this.
 */
export function activityPositionsAfter(after: Dated | undefined, now: number): ActivityPositions {
  // Ids are not empty, so that what happened at `now` is after this place.
  const start = after === undefined || after.at > now ? { at: now, id: '' } : after
  return {
    entries: [-start.at, start.id],
    signups: positionAmong(SIGNUP_PREFIX, start, 'sgn_'),
    expiries: positionAmong(EXPIRY_PREFIX, start, ''),
  }
}

/**
 * The place of a row among rows whose ids are `prefix` and something, in terms of what they are made from: `stored` and
 * the same something.
 */
function positionAmong(prefix: string, { at, id }: Dated, stored: string): KeysetPosition {
  if (id.startsWith(prefix)) return [-at, stored + id.slice(prefix.length)]
  return [-at, id < prefix ? '' : maxId]
}

/** The order of what pages newest first, and the ids that activity goes by: what all stores share. */

/** Something with a place among what pages newest first. */
export interface Dated {
  readonly at: number
  readonly id: string
}

export function newestFirst(a: Dated, b: Dated): number {
  return b.at - a.at || compareCodePoints(a.id, b.id)
}

/** What begins the ids of expiries; the key's id ends them. Lower-case letters, which no drawn id has. */
export const EXPIRY_PREFIX = 'act_expired_'

/** What begins the ids of signups' rows; what follows the prefix of the signup's own id ends them. */
export const SIGNUP_PREFIX = 'act_'

/** The types of activity that the audit trail is the source of. */
export const AUDITED_ACTIVITY_TYPES: readonly ActivityType[] = ACTIVITY_TYPES.filter((type) =>
  type !== 'signup.created' && type !== 'key.expired'
)

/** What the row of an entry is made of. */
export type AuditedEntryFields = Pick<AuditEntry, 'id' | 'at' | 'type' | 'keyId' | 'subject' | 'after'>

/** The row of an entry of a type that is among `AUDITED_ACTIVITY`. */
export function activityFromEntry({ id, at, type, keyId, subject, after }: AuditedEntryFields): Activity {
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

/** The row of a key whose time was over at `at`. */
export function activityFromExpiry(
  { id, hint, environment }: Pick<Key, 'id' | 'hint' | 'environment'>,
  at: number,
): Activity {
  return { id: EXPIRY_PREFIX + id, at, type: 'key.expired', keyId: id, hint, environment }
}

/** Signups by a value, '' for none, or by a day. */
export type SignupSum = readonly [value: string, signups: number]

/** Requests by an endpoint or a day. */
export type RequestSum = readonly [value: string, requests: number, errors: number]

/** The sums of which a summary is made. */
export interface SummaryRows {
  readonly plans: readonly SignupSum[]
  readonly countries: readonly SignupSum[]
  readonly signupDays: readonly SignupSum[]
  readonly endpoints: readonly RequestSum[]
  readonly requestDays: readonly RequestSum[]
}

/**
 * Which of the dimensions of what is counted of signups tells their days: every signup has a plan or lacks one, so that
 * either has all of them; there are fewer plans.
 */
export const DAILY_SIGNUP_DIMENSION = 'plan'

export function toSummary(
  { plans, countries, signupDays, endpoints, requestDays }: SummaryRows,
): SummaryCounts {
  return {
    signupsByPlan: plans.map(([plan, signups]) => ({ plan: plan || undefined, signups })),
    signupsByCountry: countries.map(([country, signups]) => ({ country: country || undefined, signups })),
    signupsByDay: signupDays.map(([day, signups]) => ({ day, signups })),
    requestsByEndpoint: endpoints.map(([endpoint, requests, errors]) => ({ endpoint, requests, errors })),
    requestsByDay: requestDays.map(([day, requests, errors]) => ({ day, requests, errors })),
  }
}

/** For how long stores tell batches of counts apart: what keeps them from being added twice. */

/** Milliseconds for which a batch is remembered: longer than anybody sends it again. */
export const BATCH_RETENTION_MS = 86_400_000

/** Batches, no longer remembered, that each one clears away: more than itself. */
export const BATCHES_PRUNED_PER_WRITE = 2

/** Counts of days that are over for good that each batch removes from each table, at most: far more than it adds. */
export const COUNTS_PRUNED_PER_WRITE = 1_000
