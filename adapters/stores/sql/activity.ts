/** The activity report of a partner: signups, audit entries and ended keys, merged. */
import { andThen } from '../../../core/lib/promise.ts'
import type { Environment, Module, Scope } from '../../../core/model.ts'
import {
  type Activity,
  ACTIVITY_TYPES,
  type ActivityType,
  type Reports,
} from '../../../core/ports/reports.ts'
import type { SqlReader } from './database.ts'
import { readSignup } from './tables.ts'

/** Replaces `sgn_` in the id of a signup. */
const signupPrefix = 'act_'

/** Precedes the id of a key. Its lower-case letters keep it apart from drawn ids. */
const expiryPrefix = 'act_expired_'

/**
 * @param entries A query for the rows of `entriesSql` of each of `AUDITED_TYPES`.
 */
export function createActivityList(
  { read }: SqlReader,
  entries: string,
): Reports['listActivity'] {
  const selectActivity = activitySql(entries)
  return (partner, { types, after, limit }, now) => {
    const requested = JSON.stringify(types.length === 0 ? ACTIVITY_TYPES : types)
    // No id is empty: rows at `now` come after this position.
    const { at, id } = after === undefined || after.at > now ? { at: now, id: '' } : after
    const parameters = [
      partner,
      limit,
      requested,
      -at,
      id,
      storedId(id, signupPrefix, 'sgn_'),
      storedId(id, expiryPrefix, ''),
    ]
    return andThen(
      read<ActivityRow>(selectActivity, parameters),
      (rows) => rows.map((row) => readActivity(row, partner)),
    )
  }
}

/**
 * A row of an audit entry, a signup or a key: `subject` is the environment of the last two, `record` the hint of a key.
 */
type ActivityRow = readonly [
  type: ActivityType,
  at: number,
  id: string,
  keyId: string | null,
  subject: string | null,
  record: string | null,
]

interface Segment {
  /** An SQL expression. */
  readonly type: string
  /** A table with a condition. */
  readonly source: string
  readonly recency: string
  /** The id that clients see. */
  readonly shown: string
  /** The parameter with the id to start after, among rows of one instant. */
  readonly afterId: string
  /** The last columns of `ActivityRow`. */
  readonly details: string
}

/**
 * The first rows of a type, if it is requested. Each type has an index of its own, or a part of one, which is read from
 * the position on: an import or a removal can give any number of rows one instant.
 */
const segmentSql = ({ type, source, recency, shown, afterId, details }: Segment) => `
  SELECT * FROM (
    SELECT ${type} AS type, ${recency} AS recency, ${shown} AS shown, ${details} FROM partner_api.${source}
      AND partner = $1 AND (${recency}, id) > ($4, ${afterId})
    ORDER BY ${recency}, id
    LIMIT CASE WHEN CAST($3 AS TEXT) LIKE '%"' || ${type} || '"%' THEN CAST($2 AS BIGINT) ELSE 0 END
  ) AS segment`

/** The first rows of a type of audit entry. @param type An SQL expression. */
export const entriesSql = (type: string): string =>
  segmentSql({
    type,
    // Entries beyond the recorded end of the log were not written by the store. Without the sum, it would be read
    // in its own order and sorted.
    source:
      `audit WHERE audit.type = ${type} AND sequence + 0 BETWEEN 1 AND (SELECT audit_sequence FROM partner_api.store)`,
    recency: 'recency',
    shown: 'id',
    afterId: '$5',
    details: 'id, key_id, subject, after',
  })

const signupsSql = segmentSql({
  type: `'signup.created'`,
  source: `signup WHERE environment = 'live'`,
  recency: 'recency',
  shown: `'${signupPrefix}' || substr(id, 5)`,
  afterId: '$6',
  details: 'id, key_id, environment, record',
})

const expiriesSql = segmentSql({
  type: `'key.expired'`,
  source: 'partner_key WHERE end_recency IS NOT NULL',
  recency: 'end_recency',
  shown: `'${expiryPrefix}' || id`,
  afterId: '$7',
  details: 'id, id, environment, hint',
})

/**
 * A shown id as a position among stored ids, which begin with `stored` instead of `prefix`. Both have the same order.
 */
function storedId(id: string, prefix: string, stored: string): string {
  if (id.startsWith(prefix)) return stored + id.slice(prefix.length)
  return id < prefix ? '' : '\u{10ffff}'
}

/** The types of activity that are audit entries. */
export const AUDITED_TYPES: readonly ActivityType[] = ACTIVITY_TYPES.filter((type) =>
  type !== 'signup.created' && type !== 'key.expired'
)

/**
 * Parameters: the partner, the limit, JSON of types, and the position before the page: its recency, and its id
 * among entries, signups and keys. Reading details for the rows of the page only would make it so costly to
 * PostgreSQL's planner that each call is planned anew.
 */
const activitySql = (entries: string) => `
  SELECT type, -recency, id, key_id, subject, after FROM (
    ${entries} UNION ALL ${signupsSql} UNION ALL ${expiriesSql}
  ) AS merged
  ORDER BY recency, shown LIMIT CAST($2 AS BIGINT)`

/** The members of a key that the activity report shows. */
interface KeyShown {
  readonly hint: string
  readonly environment: Environment
}

function readActivity([type, at, id, keyId, subject, record]: ActivityRow, partner: string): Activity {
  if (type === 'signup.created') {
    const signup = readSignup([id, partner, keyId!, subject as Environment, at, record!])
    return { id: signupPrefix + id.slice(4), at, type, signup }
  }
  if (type === 'key.expired') {
    return { id: expiryPrefix + id, at, type, keyId: id, hint: record!, environment: subject as Environment }
  }
  if (type === 'module.activated' || type === 'module.deactivated') {
    return { id, at, type, module: subject as Module }
  }
  const { hint, environment }: KeyShown = JSON.parse(record!)
  if (type === 'scope.granted' || type === 'scope.removed') {
    return { id, at, type, keyId: keyId!, hint, environment, scope: subject as Scope }
  }
  return { id, at, type, keyId: keyId!, hint, environment }
}
