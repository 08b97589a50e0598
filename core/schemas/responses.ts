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
import { booleanSchema, countSchema, instantSchema, integerSchema, patternSchema } from './fields.ts'
import { activitySchema, reportSummarySchema } from './reports.ts'
import { verificationSchema } from './verification.ts'

/** The place of a page in its list. */
export const pageSchema: GenericSchema<unknown, Page> = pipe(
  strictObject({
    limit: countSchema('How many rows a page has at most.', 20, 100),
    has_more: booleanSchema('Whether there is a page after this one.', true),
    next_cursor: nullable(
      pipe(
        string(),
        metadata({
          description: 'What to send as `cursor` for the next page.',
          ...CURSOR_FORMAT,
          examples: ['WyJub3JkbGljaHQiLCJhIl0.5b1c0f9d2e7a4386b0d1f2a3c4e5d6f7'],
        }),
      ),
    ),
  }),
  metadata({ title: 'Page', description: 'The place of a page in its list.' }),
)

/** That a signup was received. */
export const signupReceiptSchema: GenericSchema<unknown, SignupReceipt> = pipe(
  strictObject({
    id: patternSchema('Names the signup.', 'sgn_5K0M2N8P4QRS6TVW7XYZ', '^sgn_', 80),
    status: pipe(literal('received'), metadata({ description: 'The service has it.' })),
    created_at: instantSchema('When it was received.', '2026-11-20T09:00:00.000Z'),
  }),
  metadata({ title: 'SignupReceipt', description: 'That a signup was received.' }),
)

const clockSkew = optional(
  integerSchema(
    "Milliseconds by which this server's clock is ahead of the store's. Absent while within the max staleness.",
    3_600_000,
  ),
)

/** That the service can work. */
export const healthSchema: GenericSchema = object({
  data: pipe(
    union([
      strictObject({
        status: pipe(literal('ok'), metadata({ description: 'Service and store answer.' })),
        clock_skew_ms: clockSkew,
      }),
      strictObject({
        status: pipe(
          literal('stale'),
          metadata({ description: 'The store does not answer, and known keys go on working for a while.' }),
        ),
        since: instantSchema('When the store answered last.', '2026-11-20T09:00:00.000Z'),
        until: instantSchema('Until when known keys work.', '2026-11-20T09:00:31.000Z'),
        clock_skew_ms: clockSkew,
      }),
    ]),
    metadata({
      title: 'Health',
      description: 'That the service can work. `stale` is told only where the operator has chosen it.',
    }),
  ),
})

/** The OpenAPI document. */
export const openapiSchema: GenericSchema = pipe(
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

/** The reference page. */
export const docsSchema: GenericSchema = pipe(
  string(),
  metadata({
    description: 'An HTML document.',
    maxLength: 4_194_304,
    examples: ['<!doctype html><html lang="en"><title>Partner API</title></html>'],
  }),
)

/** The API catalog. */
export const catalogSchema: GenericSchema = pipe(
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
 * The body of every endpoint's success. No answer is made with it: it is what the documents say, and what answers are
 * held against by others than the service. It stands apart from the routes to be loaded with the first document only.
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
