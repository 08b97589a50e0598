import * as v from 'valibot'
import { COUNTRY_CODES } from '../content/iso-codes.ts'
import { MODULE_NAMES, SCOPES } from '../policy/modules.ts'
import type { ActivityType } from '../ports/reports.ts'
import type { Activity, ReportSummary } from '../wire.ts'
import * as field from './fields.ts'
import { endpointPlace, keyHint, keyId } from './verification.ts'

const requestCounts = {
  requests: field.count('Requests with live keys.', 1840),
  errors: field.count('Number of responses with status 400 or above.', 12),
}
const signups = field.count('Signups with live keys.', 9)
const plan = v.nullable(field.slug('Slug of the plan.', 'starter'))
const country = v.nullable(field.country())
const ranking = <T>(max: number, row: field.Schema<T>) => field.list('Largest count first.', max, row)

export const reportSummarySchema: field.Schema<ReportSummary> = field.named(
  'ReportSummary',
  'Signups and requests of a period.',
  {
    period: field.object('The period, in UTC.', {
      from: field.day('First day.'),
      to: field.day('Last day.'),
    }),
    signups: v.strictObject({
      total: signups,
      by_plan: ranking(100_000, v.strictObject({ plan, signups })),
      by_country: ranking(COUNTRY_CODES.length + 1, v.strictObject({ country, signups })),
    }),
    requests: v.strictObject({
      total: requestCounts.requests,
      errors: requestCounts.errors,
      by_endpoint: ranking(100, v.strictObject({ ...endpointPlace, ...requestCounts })),
    }),
    daily: field.list(
      'A row for every day of the period.',
      366,
      v.strictObject({ date: field.day('The day, in UTC.'), signups, ...requestCounts }),
    ),
  },
)

/** A row of these types, which have the same subject. */
function activityRow<const T extends readonly ActivityType[], const S extends v.ObjectEntries>(
  types: T,
  subject: S,
) {
  return v.strictObject({
    id: field.text('Id of the activity.', 'act_01J8ZQ4M7X', 200, { pattern: '^act_' }),
    occurred_at: field.instant('When it happened.', '2026-11-20T09:00:00.000Z'),
    type: v.pipe(
      v.picklist(types),
      v.metadata({ description: 'Type of the activity.', examples: [types[0]] }),
    ),
    subject: v.strictObject(subject),
  })
}

const key = { key_id: keyId('Public id of the key.', 'Zt81mK0qWv3B'), hint: keyHint }

export const activitySchema: field.Schema<Activity> = v.pipe(
  v.variant('type', [
    activityRow(['signup.created'], {
      signup_id: field.text('Id of the signup.', 'sgn_5K0M2N8P4QRS6TVW7XYZ', 80, { pattern: '^sgn_' }),
      email: field.text('Masked.', 'j***@e***.com', 254),
      name: field.text('Initials.', 'J. D.', 200),
      country,
      plan,
    }),
    activityRow(
      ['key.issued', 'key.rotated', 'key.revoked', 'key.disabled', 'key.enabled', 'key.expired'],
      key,
    ),
    activityRow(['scope.granted', 'scope.removed'], {
      ...key,
      scope: field.oneOf('The scope.', SCOPES, 'read:profiles'),
    }),
    activityRow(['module.activated', 'module.deactivated'], {
      module: field.oneOf('The module.', MODULE_NAMES, 'profiles'),
    }),
  ]),
  v.metadata({ title: 'Activity', description: 'An activity. Contains no personal data.' }),
)
