import {
  array,
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
import { countrySchema, countSchema, instantSchema, patternSchema, slugSchema, textSchema } from './fields.ts'

const dateSchema = (description: string) =>
  pipe(string(), metadata({ description, format: 'date', maxLength: 10, examples: ['2026-11-01'] }))
const requestCounts = {
  requests: countSchema('Requests of live keys.', 1840),
  errors: countSchema('Those of them that were answered with 400 or above.', 12),
}
const signupCount = countSchema('Signups of live keys.', 9)

/** What a period held, counted. */
export const reportSummarySchema: GenericSchema<unknown, ReportSummary> = pipe(
  strictObject({
    period: pipe(
      strictObject({ from: dateSchema('First day.'), to: dateSchema('Last day.') }),
      metadata({ description: 'What was counted, in UTC.' }),
    ),
    signups: strictObject({
      total: signupCount,
      by_plan: pipe(
        array(
          strictObject({ plan: nullable(slugSchema('Slug of the plan.', 'starter')), signups: signupCount }),
        ),
        metadata({ description: 'The most first.', maxItems: 100_000 }),
      ),
      by_country: pipe(
        array(
          strictObject({
            country: nullable(countrySchema()),
            signups: signupCount,
          }),
        ),
        metadata({ description: 'The most first.', maxItems: COUNTRY_CODES.length + 1 }),
      ),
    }),
    requests: strictObject({
      total: requestCounts.requests,
      errors: requestCounts.errors,
      by_endpoint: pipe(
        array(
          strictObject({
            method: pipe(picklist(['GET', 'POST']), metadata({ description: 'HTTP method.' })),
            path: textSchema('Path with `{slug}` for a parameter.', '/service/public/profiles', 200),
            ...requestCounts,
          }),
        ),
        metadata({ description: 'The most first.', maxItems: 100 }),
      ),
    }),
    daily: pipe(
      array(strictObject({ date: dateSchema('The day, in UTC.'), signups: signupCount, ...requestCounts })),
      metadata({ description: 'A row for every day of the period.', maxItems: 366 }),
    ),
  }),
  metadata({ title: 'ReportSummary', description: 'What a period held, counted.' }),
)

const row = {
  id: patternSchema('Names the row.', 'act_01J8ZQ4M7X', '^act_', 200),
  occurred_at: instantSchema('When it happened.', '2026-11-20T09:00:00.000Z'),
}
const keySubject = {
  key_id: patternSchema('Public id of the key.', 'Zt81mK0qWv3B', '^[0-9A-Za-z]{12}$', 12),
  hint: patternSchema('Its last four characters.', '…9xQ2', '^…[0-9A-Za-z]{4}$', 5),
}

/** What happened, with the sentence that the reference says of it. */
function typeSchema<const T extends readonly ActivityType[]>(types: T) {
  return pipe(picklist(types), metadata({ description: 'What happened.', examples: [types[0]] }))
}

/** Something that happened. */
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
      subject: strictObject({
        ...keySubject,
        scope: pipe(picklist(SCOPES), metadata({ description: 'The scope.', examples: ['read:profiles'] })),
      }),
    }),
    strictObject({
      ...row,
      type: typeSchema(['module.activated', 'module.deactivated']),
      subject: strictObject({
        module: pipe(
          picklist(MODULE_NAMES),
          metadata({ description: 'The module.', examples: ['profiles'] }),
        ),
      }),
    }),
  ]),
  metadata({ title: 'Activity', description: 'Something that happened. Nothing personal stands in it.' }),
)
