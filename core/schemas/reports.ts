import {
  type GenericSchema,
  metadata,
  nullable,
  picklist,
  pipe,
  strictObject,
  string,
  variant,
} from 'valibot'
import { COUNTRY_CODES } from '../content/iso-codes.ts'
import { MODULE_NAMES, SCOPES } from '../policy/modules.ts'
import type { ActivityType } from '../ports/reports.ts'
import type { Activity, ReportSummary } from '../wire.ts'
import {
  countrySchema,
  countSchema,
  describedObject,
  instantSchema,
  list,
  namedObject,
  oneOf,
  patternSchema,
  slugSchema,
  textSchema,
} from './fields.ts'

const dateSchema = (description: string) =>
  pipe(string(), metadata({ description, format: 'date', maxLength: 10, examples: ['2026-11-01'] }))
const requestCounts = {
  requests: countSchema('Requests with live keys.', 1840),
  errors: countSchema('Number of responses with status 400 or above.', 12),
}
const signups = countSchema('Signups with live keys.', 9)

export const reportSummarySchema: GenericSchema<unknown, ReportSummary> = namedObject(
  'ReportSummary',
  'Signups and requests of a period.',
  {
    period: describedObject('The period, in UTC.', {
      from: dateSchema('First day.'),
      to: dateSchema('Last day.'),
    }),
    signups: strictObject({
      total: signups,
      by_plan: list(
        'Largest count first.',
        100_000,
        strictObject({ plan: nullable(slugSchema('Slug of the plan.', 'starter')), signups }),
      ),
      by_country: list(
        'Largest count first.',
        COUNTRY_CODES.length + 1,
        strictObject({ country: nullable(countrySchema()), signups }),
      ),
    }),
    requests: strictObject({
      total: requestCounts.requests,
      errors: requestCounts.errors,
      by_endpoint: list(
        'Largest count first.',
        100,
        strictObject({
          method: oneOf('HTTP method.', ['GET', 'POST']),
          path: textSchema('Path with `{slug}` for a parameter.', '/service/public/profiles', 200),
          ...requestCounts,
        }),
      ),
    }),
    daily: list(
      'A row for every day of the period.',
      366,
      strictObject({ date: dateSchema('The day, in UTC.'), signups, ...requestCounts }),
    ),
  },
)

const row = {
  id: patternSchema('Id of the activity.', 'act_01J8ZQ4M7X', '^act_', 200),
  occurred_at: instantSchema('When it happened.', '2026-11-20T09:00:00.000Z'),
}
const keySubject = {
  key_id: patternSchema('Public id of the key.', 'Zt81mK0qWv3B', '^[0-9A-Za-z]{12}$', 12),
  hint: patternSchema('Last four characters of the key.', '…9xQ2', '^…[0-9A-Za-z]{4}$', 5),
}

function typeSchema<const T extends readonly ActivityType[]>(types: T) {
  return pipe(picklist(types), metadata({ description: 'Type of the activity.', examples: [types[0]] }))
}

export const activitySchema: GenericSchema<unknown, Activity> = pipe(
  variant('type', [
    strictObject({
      ...row,
      type: typeSchema(['signup.created']),
      subject: strictObject({
        signup_id: patternSchema('Id of the signup.', 'sgn_5K0M2N8P4QRS6TVW7XYZ', '^sgn_', 80),
        email: textSchema('Masked.', 'j***@e***.com', 254),
        name: textSchema('Initials.', 'J. D.', 200),
        country: nullable(countrySchema()),
        plan: nullable(slugSchema('Slug of the plan.', 'starter')),
      }),
    }),
    strictObject({
      ...row,
      type: typeSchema([
        'key.issued',
        'key.rotated',
        'key.revoked',
        'key.disabled',
        'key.enabled',
        'key.expired',
      ]),
      subject: strictObject(keySubject),
    }),
    strictObject({
      ...row,
      type: typeSchema(['scope.granted', 'scope.removed']),
      subject: strictObject({ ...keySubject, scope: oneOf('The scope.', SCOPES, 'read:profiles') }),
    }),
    strictObject({
      ...row,
      type: typeSchema(['module.activated', 'module.deactivated']),
      subject: strictObject({ module: oneOf('The module.', MODULE_NAMES, 'profiles') }),
    }),
  ]),
  metadata({ title: 'Activity', description: 'An activity. Contains no personal data.' }),
)
