/** Reports as all stores make them: the rows of the activity report, and the sums of the summary. */
import { compareCodePoints } from '../../core/lib/text.ts'
import type { Key } from '../../core/model.ts'
import type { Module, Scope } from '../../core/policy/modules.ts'
import type { AuditEntry } from '../../core/ports/audit.ts'
import {
  type Activity,
  ACTIVITY_TYPES,
  type ActivityType,
  type PartnerDay,
  type SummaryCounts,
  type UsageCount,
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

/**
 * @param after The last row of the previous page.
 * @param now Later rows are not shown.
 */
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

/** Selects the rows of `toPartnerDay`. Its parameters are the first day, the last, the slug before and the limit. */
export function partnerDaysSql(schema: '' | 'partner_api.', mark: '?' | '$'): string {
  const days = `day BETWEEN ${mark}1 AND ${mark}2`
  const isCounted = (table: string) =>
    `EXISTS (SELECT 1 FROM ${schema}${table} AS counted WHERE counted.partner = slug AND ${days})`
  return `
    WITH listed AS (
      SELECT slug FROM ${schema}partner
      WHERE slug > ${mark}3 AND (${isCounted('usage')} OR ${isCounted('signup_tally')})
      ORDER BY slug LIMIT ${mark}4
    )
    SELECT partner, day, CAST(sum(requests) AS BIGINT), CAST(sum(errors) AS BIGINT), CAST(sum(signups) AS BIGINT)
    FROM (
      SELECT partner, day, sum(requests) AS requests, sum(errors) AS errors, 0 AS signups FROM ${schema}usage
      WHERE partner IN (SELECT slug FROM listed) AND ${days} GROUP BY partner, day
      UNION ALL
      SELECT partner, day, 0, 0, sum(signups) FROM ${schema}signup_tally
      WHERE partner IN (SELECT slug FROM listed) AND dimension = 'plan' AND ${days} GROUP BY partner, day
    ) AS counts GROUP BY partner, day ORDER BY partner, day`
}

export type PartnerDayRow = [partner: string, day: string, requests: number, errors: number, signups: number]

export function toPartnerDay([partner, day, requests, errors, signups]: PartnerDayRow): PartnerDay {
  return { partner, day, requests, errors, signups }
}

/** Counts of live keys by partner, day and endpoint. */
export type Sums = Map<string, Pick<UsageCount, 'partner' | 'day' | 'endpoint' | 'requests' | 'errors'>>

/** Adds the counts of live keys to the sums of their partner, day and endpoint. */
export function addUsage(sums: Sums, counts: readonly UsageCount[]): void {
  for (const { environment, partner, day, endpoint, requests, errors } of counts) {
    if (environment !== 'live') continue
    const key = [partner, day, endpoint].join('\n')
    const sum = sums.get(key)
    sums.set(key, {
      partner,
      day,
      endpoint,
      requests: requests + (sum?.requests ?? 0),
      errors: errors + (sum?.errors ?? 0),
    })
  }
}

/** Milliseconds for which a batch of counts is remembered: longer than any process resends it. */
export const BATCH_RETENTION_MS = 86_400_000

/** Forgotten batches that each write removes: more than it adds. */
export const BATCHES_PRUNED_PER_WRITE = 2

/** Counts of expired days that each write removes from each table, at most: far more than it adds. */
export const COUNTS_PRUNED_PER_WRITE = 1_000
