import * as v from 'valibot'
import { CURSOR_FORMAT } from '../http/cursor.ts'
import type { Page } from '../http/message.ts'
import type { EndpointName } from '../model.ts'
import type { SignupReceipt } from '../wire.ts'
import {
  bannerSchema,
  cardSchema,
  countriesSchema,
  industriesSchema,
  plansSchema,
  profileSchema,
  widgetSchema,
} from './content.ts'
import * as field from './fields.ts'
import { activitySchema, reportSummarySchema } from './reports.ts'
import { verificationSchema } from './verification.ts'

const { maxLength, pattern } = CURSOR_FORMAT
const cursor = 'WyJub3JkbGljaHQiLCJhIl0.5b1c0f9d2e7a4386b0d1f2a3c4e5d6f7'

const pageSchema: field.Schema<Page> = field.named('Page', 'The position of a page in its list.', {
  limit: field.count('Maximum number of rows.', 20, 100),
  has_more: field.flag('Whether there is another page.', true),
  next_cursor: v.nullable(field.text('The `cursor` of the next page.', cursor, maxLength, { pattern })),
})

const signupReceiptSchema: field.Schema<SignupReceipt> = field.named(
  'SignupReceipt',
  'Confirmation of a signup.',
  {
    id: field.text('Id of the signup.', 'sgn_5K0M2N8P4QRS6TVW7XYZ', 80, { pattern: '^sgn_' }),
    status: v.pipe(v.literal('received'), v.metadata({ description: 'The signup is stored.' })),
    created_at: field.instant('When the signup was received.', '2026-11-20T09:00:00.000Z'),
  },
)

const clockSkew = v.optional(
  field.integer(
    "Milliseconds by which this server's clock is ahead of the store's. Absent if at most `max_staleness_ms`.",
    3_600_000,
  ),
)

const healthSchema: v.GenericSchema = v.object({
  data: v.pipe(
    v.union([
      v.strictObject({
        status: v.pipe(v.literal('ok'), v.metadata({ description: 'Service and store are available.' })),
        clock_skew_ms: clockSkew,
      }),
      v.strictObject({
        status: v.pipe(
          v.literal('stale'),
          v.metadata({ description: 'The store is unavailable; cached keys work until `until`.' }),
        ),
        since: field.instant('When the store last responded.', '2026-11-20T09:00:00.000Z'),
        until: field.instant('Until when cached keys work.', '2026-11-20T09:00:31.000Z'),
        clock_skew_ms: clockSkew,
      }),
    ]),
    v.metadata({
      title: 'Health',
      description: 'The state of the service. `stale` only occurs if the operator enabled it.',
    }),
  ),
})

const openapiSchema: v.GenericSchema = v.pipe(
  v.looseObject({
    openapi: v.pipe(v.string(), v.metadata({ pattern: '^3\\.1\\.', maxLength: 10 })),
    info: v.looseObject({}),
    paths: v.looseObject({}),
  }),
  v.metadata({
    description: 'An OpenAPI 3.1 document.',
    examples: [{ openapi: '3.1.1', info: { title: 'Partner API', version: '2026-11-20' }, paths: {} }],
  }),
)

const docsSchema: v.GenericSchema = v.pipe(
  v.string(),
  v.metadata({
    description: 'An HTML document.',
    maxLength: 4_194_304,
    examples: ['<!doctype html><html lang="en"><title>Partner API</title></html>'],
  }),
)

const catalogSchema: v.GenericSchema = v.pipe(
  v.object({
    linkset: v.pipe(
      v.array(
        v.looseObject({
          anchor: v.pipe(v.string(), v.metadata({ format: 'uri-reference', maxLength: 2048 })),
        }),
      ),
      v.metadata({ maxItems: 100 }),
    ),
  }),
  v.metadata({
    description: 'A set of links.',
    examples: [{
      linkset: [{
        anchor: '/service',
        'service-desc': [{ href: '/service/openapi.json', type: 'application/json' }],
      }],
    }],
  }),
)

const dataOf = (data: v.GenericSchema): v.GenericSchema => v.object({ data })
const rowsOf = (row: v.GenericSchema, max: number): v.GenericSchema =>
  v.pipe(v.array(row), v.metadata({ maxItems: max }))

/**
 * The body of every endpoint's success: for the documents, and for clients that check a deployment. Apart from the
 * routes, so that it is only loaded when needed.
 */
export const RESPONSE_SCHEMAS: Readonly<Record<EndpointName, v.GenericSchema>> = {
  'verify-key': dataOf(verificationSchema),
  widget: dataOf(widgetSchema),
  'recent-profiles': dataOf(rowsOf(cardSchema, 50)),
  profiles: v.object({ data: rowsOf(cardSchema, 100), page: pageSchema }),
  profile: dataOf(profileSchema),
  banner: dataOf(bannerSchema),
  countries: dataOf(countriesSchema),
  industries: dataOf(industriesSchema),
  plans: dataOf(plansSchema),
  'report-summary': dataOf(reportSummarySchema),
  'report-activity': v.object({ data: rowsOf(activitySchema, 100), page: pageSchema }),
  'sign-up': dataOf(signupReceiptSchema),
  health: healthSchema,
  openapi: openapiSchema,
  docs: docsSchema,
  'api-catalog': catalogSchema,
}
