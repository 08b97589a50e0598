import type { AuditedType } from '../../../../core/audit/entry.ts'
import type { Environment } from '../../../../core/model.ts'
import type { Reports } from '../../../../core/ports.ts'
import { type Activity, ACTIVITY_TYPES, type ActivityType } from '../../../../core/reports/activity.ts'
import { placesAfter } from '../../activity-places.ts'
import { activityOf, AUDITED_ACTIVITY, expiryOf, newestFirst, signupActivity } from '../../newest.ts'
import { readSignup } from '../../signup-rows.ts'
import { type Database, listText } from '../connection/database.ts'

/**
 * What a row is made from. `id`, `subject` and `record` are an entry's id, subject and what it says of its key; or a
 * signup's id and record; or a key's id, environment and hint.
 */
type SourceRow = [
  type: string,
  at: number,
  id: string,
  keyId: string | null,
  subject: string | null,
  record: string | null,
]

/** Merges what comes first of each type, for which there is an index each, in one statement, which sees one state. */
export function createActivityList(database: Database): Pick<Reports, 'listActivity'> {
  return {
    async listActivity(partner, { types, after, limit }, now) {
      const asked: ReadonlySet<ActivityType> = new Set(types.length === 0 ? ACTIVITY_TYPES : types)
      const places = placesAfter(after, now)
      const rows = await database.read<SourceRow>(newest, [
        partner,
        limit,
        listText(AUDITED_ACTIVITY.filter((type) => asked.has(type))),
        ...places.entries,
        ...places.signups,
        asked.has('signup.created') ? limit : 0,
        ...places.expiries,
        asked.has('key.expired') ? limit : 0,
      ])
      return rows.map((row) => activityFrom(row, partner)).sort(newestFirst).slice(0, limit)
    },
  }
}

/**
 * Entries outside of what the end of the trail is known to be were put there past the store. Without the addition, the
 * trail would be read in its own order and sorted.
 */
const newest = `
  (
    SELECT type, at, id, key_id, subject, after FROM unnest($3::text[]) AS asked (one) CROSS JOIN LATERAL (
      SELECT type, at, id, key_id, subject, after, recency FROM partner_api.audit
      WHERE partner = $1 AND type = one AND (recency, id) > ($4::bigint, $5::text)
        AND sequence + 0 BETWEEN 1 AND (SELECT audit_sequence FROM partner_api.store)
      ORDER BY recency, id LIMIT $2
    ) AS first ORDER BY recency, id LIMIT $2
  ) UNION ALL (
    SELECT 'signup.created', created_at, id, key_id, environment, record FROM partner_api.signup
    WHERE partner = $1 AND environment = 'live' AND (recency, id) > ($6::bigint, $7::text)
    ORDER BY recency, id LIMIT $8
  ) UNION ALL (
    SELECT 'key.expired', -end_recency, id, id, environment, hint FROM partner_api.partner_key
    WHERE partner = $1 AND end_recency IS NOT NULL AND (end_recency, id) > ($9::bigint, $10::text)
    ORDER BY end_recency, id LIMIT $11
  )`

function activityFrom([type, at, id, keyId, subject, record]: SourceRow, partner: string): Activity {
  if (type === 'signup.created') {
    return signupActivity(readSignup([id, partner, keyId!, subject!, at, record!]))
  }
  if (type === 'key.expired') return expiryOf({ id, environment: subject as Environment, hint: record! }, at)
  return activityOf({
    id,
    at,
    type: type as AuditedType,
    keyId: keyId ?? undefined,
    subject: subject ?? undefined,
    after: record ?? undefined,
  })
}
