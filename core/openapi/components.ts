/** The reusable parts of the document: headers, parameters, problems and their examples. */
import { type ProblemCode, problemDocument } from '../http/problem.ts'
import { SLUG_PATTERN } from '../lib/text.ts'
import { moduleForScope, type Scope } from '../model.ts'
import type { Route } from '../routes/route.ts'
import type { JsonSchema } from '../schemas/inputs.ts'
import { EXAMPLE_REQUEST_ID, PROBLEM_CODES, REQUEST_ID_PATTERN } from '../schemas/responses.ts'
import { API_VERSION, IDEMPOTENCY_HEADER } from '../wire.ts'
import type { DocumentSettings, ExampleObject, HeaderObject, ParameterObject, Reference } from './model.ts'

const rateLimitDraft = 'draft-ietf-httpapi-ratelimit-headers-11'
const requestIdKeywords = { pattern: REQUEST_ID_PATTERN, maxLength: 80 }
const exampleTag = '"9f86d081884c7d659a2feaa0c55ad015"'

export function describeHeaders(
  { names, limits: { key } }: DocumentSettings,
): Readonly<Record<string, HeaderObject>> {
  const keyedVary = `Authorization, ${names.keyHeader}, ${names.versionHeader}`
  const sometimes = (description: string, schema: JsonSchema, example: unknown): HeaderObject => ({
    description,
    schema: { type: 'string', ...schema },
    example,
  })
  const always = (description: string, schema: JsonSchema, example: unknown): HeaderObject => ({
    ...sometimes(description, schema, example),
    required: true,
  })
  return {
    'X-Request-Id': always(
      'Request ID. Include it in support requests.',
      requestIdKeywords,
      EXAMPLE_REQUEST_ID,
    ),
    [names.versionHeader]: always('The API version of the response.', { enum: [API_VERSION] }, API_VERSION),
    ETag: always(
      'Send it in `If-None-Match` to get a 304 without a body while the response is unchanged.',
      { pattern: '^"[!#-~]+"$', maxLength: 80 },
      exampleTag,
    ),
    'Cache-Control': always(
      'Whether and where the response may be cached.',
      { enum: ['private, no-cache', 'no-cache', 'no-store'] },
      'private, no-cache',
    ),
    Vary: always(
      'The request headers that select the response.',
      { enum: [keyedVary, 'Accept-Encoding'] },
      keyedVary,
    ),
    'X-Content-Type-Options': always('Disables media type sniffing.', { enum: ['nosniff'] }, 'nosniff'),
    'Content-Encoding': sometimes('Present if `Accept-Encoding` prefers gzip.', { enum: ['gzip'] }, 'gzip'),
    'Content-Security-Policy': always(
      'Allows nothing but the inline style and script of the page.',
      { maxLength: 2000, pattern: "^default-src 'none'; " },
      "default-src 'none'; img-src data:",
    ),
    'Referrer-Policy': always(
      'Keeps the address of the page out of requests to linked sites.',
      { enum: ['no-referrer'] },
      'no-referrer',
    ),
    'RateLimit-Policy': sometimes(
      `The policies that apply: quota \`q\` in a window of \`w\` seconds (${rateLimitDraft}).`,
      { maxLength: 200, pattern: '^"[a-z]+";q=[0-9]+;w=[0-9]+' },
      `"key";q=${key.quota};w=${key.windowSeconds}`,
    ),
    RateLimit: sometimes(
      `The rest of each quota: \`r\` requests, reset in \`t\` seconds (${rateLimitDraft}).`,
      { maxLength: 200, pattern: '^"[a-z]+";r=[0-9]+;t=[0-9]+' },
      `"key";r=${Math.max(0, key.quota - 1)};t=${key.windowSeconds}`,
    ),
    'Retry-After': sometimes(
      'Seconds to wait before the next attempt.',
      { type: 'integer', format: 'int32', minimum: 0, maximum: 86_400 },
      12,
    ),
    'WWW-Authenticate': sometimes(
      'The challenge (RFC 6750 §3).',
      { maxLength: 300, pattern: '^Bearer ' },
      `Bearer realm="${names.name}", error="invalid_token"`,
    ),
    Link: sometimes(
      'Related documents (RFC 8288): for paged lists the next page, relative to the request.',
      { maxLength: 16_384, pattern: '^<' },
      '<?partner=demo&limit=20&cursor=WyJub3Jk>; rel="next"',
    ),
    'Idempotent-Replayed': sometimes(
      'Present if the response repeats that of an earlier request.',
      { enum: ['true'] },
      'true',
    ),
  }
}

export function headerRefs(...names: readonly string[]): Readonly<Record<string, Reference>> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

/** A part of a bare key without quotes. A comma and a space would separate two fields. */
const bare = '(?: |,*[!#-+\\--~])*,*'

/** The parameters that several operations share. */
export function describeParameters({ names }: DocumentSettings): Readonly<Record<string, ParameterObject>> {
  const parameter = (
    place: ParameterObject['in'],
    name: string,
    description: string,
    schema: JsonSchema,
    example: string,
  ): ParameterObject => ({
    name,
    in: place,
    description,
    required: place !== 'header',
    schema: { type: 'string', ...schema },
    example,
  })
  const slug = { pattern: SLUG_PATTERN.source, maxLength: 80 }
  return {
    partner: parameter('query', 'partner', 'Slug of the partner that owns the key.', slug, 'demo'),
    slug: parameter('path', 'slug', 'Slug of the profile.', slug, 'nordlichter-frachtkontor'),
    version: parameter(
      'header',
      names.versionHeader,
      'The API version that the client expects; by default the current one.',
      { enum: [API_VERSION] },
      API_VERSION,
    ),
    ifNoneMatch: parameter(
      'header',
      'If-None-Match',
      'The `ETag` of a response that the client has.',
      { maxLength: 4096, pattern: '^(\\*|(W/)?"[^"]*".*)$' },
      exampleTag,
    ),
    idempotencyKey: parameter(
      'header',
      IDEMPOTENCY_HEADER,
      'Makes the request safe to retry for 24 hours: a repeated request with the same body gets the ' +
        'same response and has no further effect. Up to 255 printable ASCII characters, bare or quoted.',
      {
        maxLength: 512,
        anyOf: [
          { type: 'string', maxLength: 255, pattern: `^(?:,*[!#-+\\--~]${bare}|,+)(?:"${bare}"${bare})*$` },
          { type: 'string', maxLength: 512, pattern: '^"([ !#-\\[\\]-~]|\\\\["\\\\]){1,255}"$' },
        ],
      },
      '7d1f0c1e-6b8a-4a53-9c60-2f6a35d3c9a1',
    ),
  }
}

/** Every problem of the operation, in the order of the table. */
export function problemsOf(route: Route, { allowBrowsers }: DocumentSettings): readonly ProblemCode[] {
  const possible = new Set<ProblemCode>([
    'malformed_request',
    'invalid_parameter',
    'unknown_version',
    'not_acceptable',
    'request_timeout',
    'uri_too_long',
    'headers_too_large',
    'internal',
    ...route.problems ?? [],
  ])
  const add = (applies: boolean, ...codes: readonly ProblemCode[]): void => {
    if (applies) { for (const code of codes) possible.add(code) }
  }
  if (route.access === 'key') {
    add(true, 'ambiguous_credentials', 'key_missing', 'key_invalid', 'key_revoked', 'key_expired')
    add(true, 'key_disabled', 'address_not_allowed', 'partner_missing', 'partner_mismatch')
    add(true, 'partner_suspended', 'rate_limited', 'store_unavailable', 'overloaded')
    add(!allowBrowsers, 'browser_refused')
    add(route.scope !== undefined, 'scope_missing', 'module_inactive')
    add('cursor' in route.parameters, 'invalid_cursor')
    add(route.method === 'POST', 'body_too_large', 'unsupported_media_type', 'invalid_body')
    add(route.takesIdempotencyKey === true, 'idempotency_conflict', 'idempotency_mismatch')
  }
  return PROBLEM_CODES.filter((code) => possible.has(code))
}

export function exampleProblem(
  code: ProblemCode,
  path: string,
  scope: Scope,
  { problemBase }: DocumentSettings,
): ExampleObject {
  const module = moduleForScope(scope)
  const members = code === 'scope_missing'
    ? { detail: `This key does not hold ${scope}.`, required_scope: scope }
    : code === 'module_inactive'
    ? { detail: `The module ${module} is not active for this partner.`, required_module: module }
    : code === 'invalid_parameter'
    ? { errors: [{ parameter: 'partner', detail: 'must not be repeated' }] }
    : code === 'invalid_body'
    ? { errors: [{ pointer: '/partner', detail: 'is required' }] }
    : {}
  const value = problemDocument(code, members, problemBase, path, EXAMPLE_REQUEST_ID)
  return { summary: value.title, value }
}
