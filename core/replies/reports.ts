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
import { COUNTRY_CODES } from '../content/countries.ts'
import { MODULE_NAMES } from '../policy/modules.ts'
import { SCOPES } from '../policy/scopes.ts'
import type { ActivityType } from '../reports/activity.ts'
import { countryShape, countShape, formShape, instantShape, slugShape, textShape } from './shapes.ts'
import type { Activity, ReportSummary } from '../wire.ts'

const dateShape = (description: string) =>
  pipe(string(), metadata({ description, format: 'date', maxLength: 10, examples: ['2026-11-01'] }))
const counted = {
  requests: countShape('Requests of live keys.', 1840),
  errors: countShape('Those of them that were answered with 400 or above.', 12),
}
const signupCount = countShape('Signups of live keys.', 9)

/** What a period held, counted. */
export const summaryShape: GenericSchema<unknown, ReportSummary> = pipe(
  strictObject({
    period: pipe(
      strictObject({ from: dateShape('First day.'), to: dateShape('Last day.') }),
      metadata({ description: 'What was counted, in UTC.' }),
    ),
    signups: strictObject({
      total: signupCount,
      by_plan: pipe(
        array(
          strictObject({ plan: nullable(slugShape('Slug of the plan.', 'starter')), signups: signupCount }),
        ),
        metadata({ description: 'The most first.', maxItems: 100_000 }),
      ),
      by_country: pipe(
        array(
          strictObject({
            country: nullable(countryShape()),
            signups: signupCount,
          }),
        ),
        metadata({ description: 'The most first.', maxItems: COUNTRY_CODES.length + 1 }),
      ),
    }),
    requests: strictObject({
      total: counted.requests,
      errors: counted.errors,
      by_endpoint: pipe(
        array(
          strictObject({
            method: pipe(picklist(['GET', 'POST']), metadata({ description: 'HTTP method.' })),
            path: textShape('Path with `{slug}` for a parameter.', '/service/public/profiles', 200),
            ...counted,
          }),
        ),
        metadata({ description: 'The most first.', maxItems: 100 }),
      ),
    }),
    daily: pipe(
      array(strictObject({ date: dateShape('The day, in UTC.'), signups: signupCount, ...counted })),
      metadata({ description: 'A row for every day of the period.', maxItems: 366 }),
    ),
  }),
  metadata({ title: 'ReportSummary', description: 'What a period held, counted.' }),
)

const row = {
  id: formShape('Names the row.', 'act_01J8ZQ4M7X', '^act_', 200),
  occurred_at: instantShape('When it happened.', '2026-11-20T09:00:00.000Z'),
}
const keySubject = {
  key_id: formShape('Public id of the key.', 'Zt81mK0qWv3B', '^[0-9A-Za-z]{12}$', 12),
  hint: formShape('Its last four characters.', '…9xQ2', '^…[0-9A-Za-z]{4}$', 5),
}

/** What happened, with the sentence that the reference says of it. */
function kind<const T extends readonly ActivityType[]>(types: T) {
  return pipe(picklist(types), metadata({ description: 'What happened.', examples: [types[0]] }))
}

/** Something that happened. */
export const activityShape: GenericSchema<unknown, Activity> = pipe(
  variant('type', [
    strictObject({
      ...row,
      type: kind(['signup.created']),
      subject: strictObject({
        signup_id: formShape('Id of the signup.', 'sgn_5K0M2N8P4QRS6TVW7XYZ', '^sgn_', 80),
        email: textShape('Masked.', 'j***@e***.com', 254),
        name: textShape('Initials.', 'J. D.', 200),
        country: nullable(countryShape()),
        plan: nullable(slugShape('Slug of the plan.', 'starter')),
      }),
    }),
    strictObject({
      ...row,
      type: kind(['key.issued', 'key.rotated', 'key.revoked', 'key.disabled', 'key.enabled', 'key.expired']),
      subject: strictObject(keySubject),
    }),
    strictObject({
      ...row,
      type: kind(['scope.granted', 'scope.removed']),
      subject: strictObject({
        ...keySubject,
        scope: pipe(picklist(SCOPES), metadata({ description: 'The scope.', examples: ['read:profiles'] })),
      }),
    }),
    strictObject({
      ...row,
      type: kind(['module.activated', 'module.deactivated']),
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
