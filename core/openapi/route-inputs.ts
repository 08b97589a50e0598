/** What the document says of requests. Apart from the routes, so that services do not load it. */
import { COUNTRY_CODES, LOCALE_PATTERN } from '../content/iso-codes.ts'
import { SLUG_PATTERN } from '../lib/text.ts'
import type { EndpointName } from '../model.ts'
import { ACTIVITY_TYPES } from '../ports/reports.ts'
import { CURSOR_KEYWORDS } from '../schemas/fields.ts'
import type { JsonSchema } from './model.ts'

interface RouteInputs {
  /** A sentence or two about the route. */
  readonly description: string
  /** Its query parameters; the schema is that of one value. */
  readonly parameters?: Readonly<
    Record<string, { readonly description: string; readonly schema: JsonSchema }>
  >
  readonly body?: JsonSchema
}

const slug = { pattern: SLUG_PATTERN.source }
const nullableText = { type: ['string', 'null'] }
const limit = (maximum: number): JsonSchema => (
  { type: 'integer', minimum: 1, maximum, format: 'int32', examples: [20] }
)
const cursor = {
  description: '`next_cursor` of the page before.',
  schema: { type: 'string', ...CURSOR_KEYWORDS },
}
const day: JsonSchema = { type: 'string', format: 'date', maxLength: 10, examples: ['2026-11-01'] }
const inUse = {
  description: 'Return only entries with a profile.',
  schema: { type: 'boolean', examples: [true] },
}

/** A code in either case. */
const countryCode = {
  maxLength: 2,
  examples: ['DE'],
  anyOf: [{ $ref: '#/components/schemas/CountryCode' }, {
    type: 'string',
    pattern: `^(?:${
      Array.from(Map.groupBy(COUNTRY_CODES, (code) => code[0]!), ([first, codes]) => {
        const seconds = codes.map((code) => code[1]).join('')
        return `[${first}${first.toLowerCase()}][${seconds}${seconds.toLowerCase()}]`
      }).join('|')
    })$`,
    maxLength: 2,
  }],
}

const partner: JsonSchema = {
  type: 'string',
  description: 'Slug of the partner that owns the key.',
  ...slug,
  maxLength: 80,
  examples: ['demo'],
}

function body(required: readonly string[], properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: 'object', required, additionalProperties: false, properties }
}

const signup = body(['partner', 'email', 'name'], {
  partner,
  email: {
    type: 'string',
    maxLength: 254,
    format: 'email',
    description: 'E-mail address.',
    examples: ['jane@example.com'],
  },
  name: {
    type: 'string',
    minLength: 1,
    maxLength: 200,
    description: 'Name of the person: one line, not blank.',
    examples: ['Jane Doe'],
  },
  company: {
    ...nullableText,
    minLength: 0,
    maxLength: 200,
    description: 'Name of the company: one line, empty or not blank.',
    examples: ['Example Ltd'],
  },
  country: {
    ...nullableText,
    description: 'ISO 3166-1 alpha-2 or `XK`, in either case.',
    ...countryCode,
    anyOf: [...countryCode.anyOf, { type: 'null' }],
  },
  plan: {
    ...nullableText,
    ...slug,
    description: 'Slug of the plan.',
    maxLength: 80,
    examples: ['starter'],
  },
  profile: {
    ...nullableText,
    ...slug,
    description: 'Slug of the profile.',
    maxLength: 80,
    examples: ['nordlichter-frachtkontor'],
  },
  locale: {
    ...nullableText,
    description: 'Language of the form, BCP 47.',
    pattern: LOCALE_PATTERN,
    maxLength: 255,
    examples: ['en-GB'],
  },
  message: {
    ...nullableText,
    minLength: 0,
    maxLength: 2000,
    description: 'Free text.',
    examples: ['Please call me back.'],
  },
  consent_at: {
    ...nullableText,
    description: 'When the person agreed to be contacted.',
    format: 'date-time',
    maxLength: 64,
    examples: ['2026-11-20T09:00:00Z'],
  },
  metadata: {
    description: 'Additional data of the form: names of 1–40, values of up to 500 characters.',
    type: ['object', 'null'],
    maxProperties: 20,
    propertyNames: { type: 'string', minLength: 1, maxLength: 40 },
    additionalProperties: { type: 'string', maxLength: 500 },
    examples: [{ campaign: 'spring' }],
  },
})

export const ROUTE_INPUTS: Readonly<Record<EndpointName, RouteInputs>> = {
  'verify-key': {
    description:
      'Shows what a key permits. Failures are the same problems that any other endpoint would return.',
    body: body(['partner'], { partner }),
  },
  widget: {
    description:
      'Everything that a widget shows, in one call. Each part equals its own endpoint; countries and industries are those in use.',
  },
  'recent-profiles': {
    description: 'The newest profiles first.',
    parameters: { limit: { description: 'How many profiles.', schema: limit(50) } },
  },
  profiles: {
    description:
      'The matching profiles in pages. Follow `page.next_cursor`, or the `Link` header, to the last page.',
    parameters: {
      q: {
        description: 'Words that must match the start of a word in name, headline, description or tags.',
        schema: {
          type: 'string',
          minLength: 2,
          maxLength: 100,
          pattern: '[^\\x00-/:-@\\[-`{-\\x7f]',
          examples: ['freight'],
        },
      },
      country: {
        description: 'ISO 3166-1 alpha-2, in either case: any of these.',
        schema: { type: 'string', ...countryCode },
      },
      industry: {
        description: 'Industry slug: any of these.',
        schema: { type: 'string', maxLength: 80, examples: ['logistics'] },
      },
      sort: {
        description: 'The order: by name, or newest first.',
        schema: { enum: ['name', '-published_at'], type: 'string' },
      },
      limit: { description: 'How many profiles a page has.', schema: limit(100) },
      cursor,
    },
  },
  profile: { description: 'A complete profile.' },
  banner: { description: 'The current banner of the partner.' },
  countries: {
    description: 'All officially assigned ISO 3166-1 codes and `XK`, by name, for filters and forms.',
    parameters: {
      in_use: inUse,
      locale: {
        description: 'Language of the names.',
        schema: { type: 'string', maxLength: 255, pattern: LOCALE_PATTERN, examples: ['de'] },
      },
    },
  },
  industries: {
    description: 'The industries of profiles, by name, for filters.',
    parameters: { in_use: inUse },
  },
  plans: { description: 'The plans in the order of a pricing table.' },
  'report-summary': {
    description: 'Numbers of signups and requests with live keys in a period.',
    parameters: {
      from: { description: 'First day, in UTC.', schema: day },
      to: { description: 'Last day, in UTC; a period has at most 366 days.', schema: day },
    },
  },
  'report-activity': {
    description: 'The latest activities, with masked personal data.',
    parameters: {
      type: {
        description: 'Types of activity, any of these.',
        schema: { enum: ACTIVITY_TYPES, type: 'string' },
      },
      limit: { description: 'How many rows a page has.', schema: limit(100) },
      cursor,
    },
  },
  'sign-up': {
    description:
      'Submits a signup form. A 201 confirms durable storage. With an `Idempotency-Key`, the request is safe to retry.',
    body: signup,
  },
  health: { description: 'For load balancers and monitoring.' },
  openapi: { description: 'OpenAPI 3.1, generated from the route table of the service.' },
  docs: { description: 'The API reference as one self-contained page.' },
  'api-catalog': { description: 'Links to the documents of this service (RFC 9727, RFC 9264).' },
}
