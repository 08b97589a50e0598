import {
  array,
  type GenericSchema,
  literal,
  looseObject,
  metadata,
  nullable,
  object,
  optional,
  pipe,
  strictObject,
  string,
  union,
} from 'valibot'
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
import {
  booleanSchema,
  countSchema,
  instantSchema,
  integerSchema,
  namedObject,
  patternSchema,
} from './fields.ts'
import { activitySchema, reportSummarySchema } from './reports.ts'
import { verificationSchema } from './verification.ts'

const pageSchema: GenericSchema<unknown, Page> = namedObject('Page', 'The position of a page in its list.', {
  limit: countSchema('Maximum number of rows.', 20, 100),
  has_more: booleanSchema('Whether there is another page.', true),
  next_cursor: nullable(
    pipe(
      string(),
      metadata({
        description: 'The `cursor` of the next page.',
        ...CURSOR_FORMAT,
        examples: ['WyJub3JkbGljaHQiLCJhIl0.5b1c0f9d2e7a4386b0d1f2a3c4e5d6f7'],
      }),
    ),
  ),
})

const signupReceiptSchema: GenericSchema<unknown, SignupReceipt> = namedObject(
  'SignupReceipt',
  'Confirmation of a signup.',
  {
    id: patternSchema('Id of the signup.', 'sgn_5K0M2N8P4QRS6TVW7XYZ', '^sgn_', 80),
    status: pipe(literal('received'), metadata({ description: 'The signup is stored.' })),
    created_at: instantSchema('When the signup was received.', '2026-11-20T09:00:00.000Z'),
  },
)

const clockSkew = optional(
  integerSchema(
    "Milliseconds by which this server's clock is ahead of the store's. Absent if at most `max_staleness_ms`.",
    3_600_000,
  ),
)

const healthSchema: GenericSchema = object({
  data: pipe(
    union([
      strictObject({
        status: pipe(literal('ok'), metadata({ description: 'Service and store are available.' })),
        clock_skew_ms: clockSkew,
      }),
      strictObject({
        status: pipe(
          literal('stale'),
          metadata({ description: 'The store is unavailable; cached keys work until `until`.' }),
        ),
        since: instantSchema('When the store last responded.', '2026-11-20T09:00:00.000Z'),
        until: instantSchema('Until when cached keys work.', '2026-11-20T09:00:31.000Z'),
        clock_skew_ms: clockSkew,
      }),
    ]),
    metadata({
      title: 'Health',
      description: 'The state of the service. `stale` only occurs if the operator enabled it.',
    }),
  ),
})

const openapiSchema: GenericSchema = pipe(
  looseObject({
    openapi: pipe(string(), metadata({ pattern: '^3\\.1\\.', maxLength: 10 })),
    info: looseObject({}),
    paths: looseObject({}),
  }),
  metadata({
    description: 'An OpenAPI 3.1 document.',
    examples: [{ openapi: '3.1.1', info: { title: 'Partner API', version: '2026-11-20' }, paths: {} }],
  }),
)

const docsSchema: GenericSchema = pipe(
  string(),
  metadata({
    description: 'An HTML document.',
    maxLength: 4_194_304,
    examples: ['<!doctype html><html lang="en"><title>Partner API</title></html>'],
  }),
)

const catalogSchema: GenericSchema = pipe(
  object({
    linkset: pipe(
      array(
        looseObject({ anchor: pipe(string(), metadata({ format: 'uri-reference', maxLength: 2048 })) }),
      ),
      metadata({ maxItems: 100 }),
    ),
  }),
  metadata({
    description: 'A set of links.',
    examples: [{
      linkset: [{
        anchor: '/service',
        'service-desc': [{ href: '/service/openapi.json', type: 'application/json' }],
      }],
    }],
  }),
)

const dataOf = (data: GenericSchema): GenericSchema => object({ data })
const rowsOf = (row: GenericSchema, max: number): GenericSchema =>
  pipe(array(row), metadata({ maxItems: max }))

/**
 * The body of every endpoint's success: for the documents, and for clients that check a deployment. Apart from the
 * routes, so that it is only loaded when needed.
 */
export const RESPONSE_SCHEMAS: Readonly<Record<EndpointName, GenericSchema>> = {
  'verify-key': dataOf(verificationSchema),
  widget: dataOf(widgetSchema),
  'recent-profiles': dataOf(rowsOf(cardSchema, 50)),
  profiles: object({ data: rowsOf(cardSchema, 100), page: pageSchema }),
  profile: dataOf(profileSchema),
  banner: dataOf(bannerSchema),
  countries: dataOf(countriesSchema),
  industries: dataOf(industriesSchema),
  plans: dataOf(plansSchema),
  'report-summary': dataOf(reportSummarySchema),
  'report-activity': object({ data: rowsOf(activitySchema, 100), page: pageSchema }),
  'sign-up': dataOf(signupReceiptSchema),
  health: healthSchema,
  openapi: openapiSchema,
  docs: docsSchema,
  'api-catalog': catalogSchema,
}
