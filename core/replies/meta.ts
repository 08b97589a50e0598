import {
  array,
  type GenericSchema,
  literal,
  looseObject,
  metadata,
  object,
  optional,
  pipe,
  strictObject,
  string,
  union,
} from 'valibot'
import { instantShape, integerShape } from './shapes.ts'

const clockSkew = optional(
  integerShape(
    "Milliseconds by which this server's clock is ahead of the store's. Absent while within the max staleness.",
    3_600_000,
  ),
)

/** That the service can work. */
export const healthReply: GenericSchema = object({
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
        since: instantShape('When the store answered last.', '2026-11-20T09:00:00.000Z'),
        until: instantShape('Until when known keys work.', '2026-11-20T09:00:31.000Z'),
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
export const openapiReply: GenericSchema = pipe(
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
export const docsReply: GenericSchema = pipe(
  string(),
  metadata({
    description: 'An HTML document.',
    maxLength: 4_194_304,
    examples: ['<!doctype html><html lang="en"><title>Partner API</title></html>'],
  }),
)

/** The API catalog. */
export const catalogReply: GenericSchema = pipe(
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
