/** Reports as all stores make them: the rows of the activity report, and the sums of the summary. */
import { compareCodePoints } from '../../core/lib/text.ts'
import type { Key, Module, Scope } from '../../core/model.ts'
import type { AuditEntry } from '../../core/ports/audit.ts'
import {
  type Activity,
  ACTIVITY_TYPES,
  type ActivityType,
  type PartnerDay,
  type SummaryCounts,
} from '../../core/ports/reports.ts'
import type { Signup } from '../../core/ports/signups.ts'

/** A position in a list that is sorted newest first, then by id: minus the instant, and the id. Later rows are greater. */
export type KeysetPosition = readonly [recency: number, id: string]

/** The position before all rows. */
export const FIRST_POSITION: KeysetPosition = [-Number.MAX_SAFE_INTEGER, '']

/** Greater than every id. */
const maxId = '\u{10ffff}'

/** Something that lists show newest first. */
export interface Dated {
  readonly at: number
  readonly id: string
}

export function newestFirst(a: Dated, b: Dated): number {
  return b.at - a.at || compareCodePoints(a.id, b.id)
}

/** The positions in each source of the activity report that a page starts after. */
export interface ActivityPositions {
  /** Among audit entries. */
  readonly entries: KeysetPosition
  readonly signups: KeysetPosition
  /** Among keys, by their end. */
  readonly expiries: KeysetPosition
}

/** @param after The last row of the previous page. @param now Later rows are not shown. */
export function activityPositionsAfter(after: Dated | undefined, now: number): ActivityPositions {
  // No id is empty: rows at `now` come after this position.
  const start = after === undefined || after.at > now ? { at: now, id: '' } : after
  return {
    entries: [-start.at, start.id],
    signups: positionAmong(signupPrefix, start, 'sgn_'),
    expiries: positionAmong(expiryPrefix, start, ''),
  }
}

/** The position of a row among rows whose ids begin with `prefix`, and with `stored` in the source they come from. */
function positionAmong(prefix: string, { at, id }: Dated, stored: string): KeysetPosition {
  if (id.startsWith(prefix)) return [-at, stored + id.slice(prefix.length)]
  return [-at, id < prefix ? '' : maxId]
}

/** Replaces `sgn_` in the id of a signup. */
const signupPrefix = 'act_'

/** Precedes the id of a key. Its lower-case letters keep it apart from drawn ids. */
const expiryPrefix = 'act_expired_'

/** The types of activity that come from the audit log. */
export const AUDITED_ACTIVITY_TYPES: readonly ActivityType[] = ACTIVITY_TYPES.filter((type) =>
  type !== 'signup.created' && type !== 'key.expired'
)

/** The row of an audit entry whose type is one of `AUDITED_ACTIVITY_TYPES`. */
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
  return { id: signupPrefix + signup.id.slice(4), at: signup.createdAt, type: 'signup.created', signup }
}

/** The row of a key that ended at `at`. */
export function activityFromExpiry(
  { id, hint, environment }: Pick<Key, 'id' | 'hint' | 'environment'>,
  at: number,
): Activity {
  return { id: expiryPrefix + id, at, type: 'key.expired', keyId: id, hint, environment }
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

/**
 * Selects the rows of `toSummary`. Its parameters are the partner, the first day and the last.
 *
 * @param schema Precedes the name of a table.
 * @param mark Precedes the number of a parameter.
 */
export function summarySql(schema: '' | 'partner_api.', mark: '?' | '$'): string {
  const select = (
    part: SumRow[0],
    column: string,
    table: string,
    sums: readonly string[],
    condition = '',
  ) => `
    SELECT '${part}', ${column}, ${sums.map((sum) => `CAST(${sum} AS BIGINT)`)} FROM ${schema}${table}
    WHERE partner = ${mark}1 AND day BETWEEN ${mark}2 AND ${mark}3 ${condition} GROUP BY ${column}`
  const signups = (part: SumRow[0], column: 'value' | 'day', dimension: 'plan' | 'country') =>
    select(part, column, 'signup_tally', ['sum(signups)', '0'], `AND dimension = '${dimension}'`)
  const requests = (part: SumRow[0], column: 'endpoint' | 'day') =>
    select(part, column, 'usage', ['sum(requests)', 'sum(errors)'])
  return [
    signups('signupsByPlan', 'value', 'plan'),
    signups('signupsByCountry', 'value', 'country'),
    // Every signup counts once in each dimension, so either has the sums by day; there are fewer plans than countries.
    signups('signupsByDay', 'day', 'plan'),
    requests('requestsByEndpoint', 'endpoint'),
    requests('requestsByDay', 'day'),
  ].join(' UNION ALL ')
}

/**
 * The queries of `summarisePartners`. The parameters of each are the first day, the last and the slug before. `last` also
 * takes the limit, and finds the last slug of the page; the others take that slug.
 */
export function partnerDaysSql(schema: '' | 'partner_api.', mark: '?' | '$') {
  const isCounted = (table: string) =>
    `EXISTS (SELECT 1 FROM ${schema}${table} AS counted
      WHERE counted.partner = slug AND counted.day BETWEEN ${mark}1 AND ${mark}2)`
  // In SQLite, the plus and the join (CROSS: in this order) keep it from reading by day, which takes four times as long.
  const plus = mark === '?' ? '+' : ''
  const days = `day BETWEEN ${mark}1 AND ${mark}2 GROUP BY partner, day ORDER BY partner, day`
  return {
    last: `SELECT max(slug) FROM (
        SELECT slug FROM ${schema}partner
        WHERE slug > ${mark}3 AND (${isCounted('usage')} OR ${isCounted('signup_tally')})
        ORDER BY slug LIMIT ${mark}4
      ) AS page`,
    requests: `SELECT partner, day, CAST(sum(requests) AS BIGINT), CAST(sum(errors) AS BIGINT), 0
      FROM ${schema}usage WHERE partner > ${mark}3 AND partner <= ${mark}4 AND ${plus}${days}`,
    signups: `SELECT partner, day, 0, 0, CAST(sum(signups) AS BIGINT)
      FROM ${schema}partner CROSS JOIN ${schema}signup_tally
      WHERE slug > ${mark}3 AND slug <= ${mark}4 AND partner = slug AND dimension = 'plan' AND ${days}`,
  }
}

export type PartnerDayRow = readonly [
  partner: string,
  day: string,
  requests: number,
  errors: number,
  signups: number,
]

/** Merges lists of rows that are in order, with one row for each partner and day. */
export function mergePartnerDays(...lists: readonly (readonly PartnerDayRow[])[]): PartnerDay[] {
  // Sorting takes linear time, because the lists are sorted already.
  const rows = lists.flat().sort((a, b) => compare(a[0], b[0]) || compare(a[1], b[1]))
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

/** Milliseconds for which a batch of counts is remembered: longer than any process resends it. */
export const BATCH_RETENTION_MS = 86_400_000

/** Forgotten batches that each write removes: more than it adds. */
export const BATCHES_PRUNED_PER_WRITE = 2

/** Counts of expired days that each write removes from each table, at most: more than it adds. */
export const COUNTS_PRUNED_PER_WRITE = 200
