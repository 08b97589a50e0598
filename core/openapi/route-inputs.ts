/** What the document says of requests. Apart from the routes, so that services do not load it. */
import { COUNTRY_CODES, LOCALE_PATTERN } from '../content/iso-codes.ts'
import { EMAIL_PATTERN, SLUG_PATTERN } from '../lib/text.ts'
import type { EndpointName } from '../model.ts'
import { ACTIVITY_TYPES } from '../ports/reports.ts'
import { CURSOR_KEYWORDS } from '../schemas/fields.ts'
import type { JsonSchema } from './model.ts'

interface RouteInputs {
  /** A sentence or two about the route. */
  readonly description: string
  /** Its query parameters, each with the schema of one value. */
  readonly parameters?: Readonly<Record<string, readonly [description: string, schema: JsonSchema]>>
  readonly body?: JsonSchema
}

/**
 * Patterns that every validator understands: no `\\p`, and characters as they are instead of `\\u`. They come close to what
 * the service checks by Unicode's categories.
 */
const oneLine = '[^\\x00-\\x1f\\x7f-\\x9f\u2028\u2029]*'
const visible = '[^\\x00-\\x20\\x7f-\\xa0\\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000' +
  '\ue000-\uf8ff\ufeff\ufff0-\ufffb]'
const line = `${oneLine}${visible}${oneLine}`
const storable = { pattern: '^[^\\x00]*$' }
/** Letters and digits: leaves out most symbols, marks and private characters of the basic plane. */
const searchable =
  '[^\\x00-/:-@\\[-`{-\\xa9\\xab-\\xb1\\xb4\\xb6-\\xb8\\xbb\\xbf\\xd7\\xf7\u02c2-\u036f\u2000-\u2070' +
  '\u20a0-\u20ff\u2190-\u245f\u2500-\u2775\u2794-\u2bff\u2ff0-\u3004\u3008-\u3020\ue000-\uf8ff\ufe00-\ufe6f\uffe0-\uffff]'

const text = { type: 'string' }
const nullable = { type: ['string', 'null'] }
const slug = { pattern: SLUG_PATTERN.source }
const example = (value: unknown) => ({ examples: [value] })

const secondLetters = Array.from(Map.groupBy(COUNTRY_CODES, (code) => code[0]!), ([first, codes]) => {
  const seconds = codes.map((code) => code[1]).join('')
  return `[${first}${first.toLowerCase()}][${seconds}${seconds.toLowerCase()}]`
})
/** A country's code in either case. */
const country = {
  maxLength: 2,
  ...example('DE'),
  anyOf: [
    { $ref: '#/components/schemas/CountryCode' },
    { ...text, pattern: `^(?:${secondLetters.join('|')})$`, maxLength: 2 },
  ],
}

const limitTo = (maximum: number) => (
  { type: 'integer', minimum: 1, maximum, format: 'int32', ...example(20) }
)
const pageParameters = {
  limit: ['How many rows a page has.', limitTo(100)],
  cursor: ['`next_cursor` of the page before.', { ...text, ...CURSOR_KEYWORDS }],
} as const
const day = { ...text, format: 'date', maxLength: 10, ...example('2026-11-01') }
const in_use = ['Return only entries with a profile.', { type: 'boolean', ...example(true) }] as const

function body(required: readonly string[], properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: 'object', required, additionalProperties: false, properties }
}

/** @param keywords Those that the document has before the description. */
function member(keywords: JsonSchema, description: string, others: JsonSchema): JsonSchema {
  return { ...keywords, description, ...others }
}

const partner = member(text, 'Slug of the partner that owns the key.', {
  ...slug,
  maxLength: 80,
  ...example('demo'),
})

const signup = {
  partner,
  email: member(
    { ...text, maxLength: 254, format: 'email', pattern: EMAIL_PATTERN.source },
    'E-mail address.',
    example('jane@example.com'),
  ),
  name: member(
    { ...text, minLength: 1, maxLength: 200, pattern: `^${line}$` },
    'Name of the person: one line, not blank.',
    example('Jane Doe'),
  ),
  company: member(
    { ...nullable, minLength: 0, maxLength: 200, pattern: `^(?:${line})?$` },
    'Name of the company: one line, empty or not blank.',
    example('Example Ltd'),
  ),
  country: member(nullable, 'ISO 3166-1 alpha-2 or `XK`, in either case.', {
    ...country,
    anyOf: [...country.anyOf, { type: 'null' }],
  }),
  plan: member({ ...nullable, ...slug }, 'Slug of the plan.', { maxLength: 80, ...example('starter') }),
  profile: member({ ...nullable, ...slug }, 'Slug of the profile.', {
    maxLength: 80,
    ...example('nordlichter-frachtkontor'),
  }),
  locale: member(nullable, 'Language of the form, BCP 47.', {
    pattern: LOCALE_PATTERN,
    maxLength: 255,
    ...example('en-GB'),
  }),
  message: member(
    { ...nullable, minLength: 0, maxLength: 2000, ...storable },
    'Free text.',
    example('Please call me back.'),
  ),
  consent_at: member(nullable, 'When the person agreed to be contacted.', {
    format: 'date-time',
    maxLength: 64,
    ...example('2026-11-20T09:00:00Z'),
  }),
  metadata: {
    description: 'Additional data of the form: names of 1–40, values of up to 500 characters.',
    type: ['object', 'null'],
    maxProperties: 20,
    propertyNames: { ...text, minLength: 1, maxLength: 40, ...storable },
    additionalProperties: { ...text, maxLength: 500, ...storable },
    ...example({ campaign: 'spring' }),
  },
}

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
    parameters: { limit: ['How many profiles.', limitTo(50)] },
  },
  profiles: {
    description:
      'The matching profiles in pages. Follow `page.next_cursor`, or the `Link` header, to the last page.',
    parameters: {
      q: ['Words that must match the start of a word in name, headline, description or tags.', {
        ...text,
        minLength: 2,
        maxLength: 100,
        pattern: searchable,
        ...example('freight'),
      }],
      country: ['ISO 3166-1 alpha-2, in either case: any of these.', { ...text, ...country }],
      industry: ['Industry slug: any of these.', { ...text, maxLength: 80, ...example('logistics') }],
      sort: ['The order: by name, or newest first.', { enum: ['name', '-published_at'], ...text }],
      ...pageParameters,
      limit: ['How many profiles a page has.', limitTo(100)],
    },
  },
  profile: { description: 'A complete profile.' },
  banner: { description: 'The current banner of the partner.' },
  countries: {
    description: 'All officially assigned ISO 3166-1 codes and `XK`, by name, for filters and forms.',
    parameters: {
      in_use,
      locale: ['Language of the names.', {
        ...text,
        maxLength: 255,
        pattern: LOCALE_PATTERN,
        ...example('de'),
      }],
    },
  },
  industries: { description: 'The industries of profiles, by name, for filters.', parameters: { in_use } },
  plans: { description: 'The plans in the order of a pricing table.' },
  'report-summary': {
    description: 'Numbers of signups and requests with live keys in a period.',
    parameters: {
      from: ['First day, in UTC.', day],
      to: ['Last day, in UTC; a period has at most 366 days.', day],
    },
  },
  'report-activity': {
    description: 'The latest activities, with masked personal data.',
    parameters: {
      type: ['Types of activity, any of these.', { enum: ACTIVITY_TYPES, ...text }],
      ...pageParameters,
    },
  },
  'sign-up': {
    description:
      'Submits a signup form. A 201 confirms durable storage. With an `Idempotency-Key`, the request is safe to retry.',
    body: body(['partner', 'email', 'name'], signup),
  },
  health: { description: 'For load balancers and monitoring.' },
  openapi: { description: 'OpenAPI 3.1, generated from the route table of the service.' },
  docs: { description: 'The API reference as one self-contained page.' },
  'api-catalog': { description: 'Links to the documents of this service (RFC 9727, RFC 9264).' },
}
