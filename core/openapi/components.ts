/** The header fields that requests and answers have, and the parameters that no route declares. */
import { API_VERSION } from '../http/headers.ts'
import { type ProblemCode, problemDocument, PROBLEMS } from '../http/problem.ts'
import { SLUG_PATTERN } from '../lib/text.ts'
import { MODULE_NAMES, moduleForScope, SCOPES } from '../policy/modules.ts'
import type { Route } from '../routes/route.ts'
import { IDEMPOTENCY_HEADER } from '../signups/idempotency.ts'
import type {
  DocumentSettings,
  ExampleObject,
  HeaderObject,
  JsonSchema,
  ParameterObject,
  Reference,
} from './model.ts'

/** Draft 11 of the IETF's httpapi working group. */
const rateLimitDraft = 'draft-ietf-httpapi-ratelimit-headers-11'

/** The names under which header fields stand in `components`; the version's is the service's own. */
export function describeHeaders(
  { names, limits: { key } }: DocumentSettings,
): Readonly<Record<string, HeaderObject>> {
  const keyedVary = `Authorization, ${names.keyHeader}, ${names.versionHeader}`
  return {
    'X-Request-Id': {
      description: 'Names this answer in the log of the service. Keep it for questions.',
      required: true,
      schema: { type: 'string', pattern: '^req_[0-9A-Za-z]+$', maxLength: 80 },
      example: 'req_0m4x2k7c9pQ1',
    },
    [names.versionHeader]: {
      description: 'The version of the wire that answered.',
      required: true,
      schema: { type: 'string', const: API_VERSION },
      example: API_VERSION,
    },
    ETag: {
      description:
        'Send it back in `If-None-Match`, and an answer that has not changed is 304 without a body.',
      required: true,
      schema: { type: 'string', pattern: '^"[!#-~]+"$', maxLength: 80 },
      example: '"9f86d081884c7d659a2feaa0c55ad015"',
    },
    'Cache-Control': {
      description: 'What may be kept, and by whom.',
      required: true,
      schema: { type: 'string', enum: ['private, no-cache', 'no-cache', 'no-store'] },
      example: 'private, no-cache',
    },
    Vary: {
      description: 'The request fields that select the answer.',
      required: true,
      schema: { type: 'string', enum: [keyedVary, 'Accept-Encoding'] },
      example: keyedVary,
    },
    'X-Content-Type-Options': {
      description: 'The media type is the one of `Content-Type`.',
      required: true,
      schema: { type: 'string', const: 'nosniff' },
      example: 'nosniff',
    },
    'Content-Encoding': {
      description: 'Stands on a document that `Accept-Encoding` has asked for in gzip.',
      schema: { type: 'string', const: 'gzip' },
      example: 'gzip',
    },
    'Content-Security-Policy': {
      description: 'What the page may load: nothing but its own style and script.',
      required: true,
      schema: { type: 'string', maxLength: 2000, pattern: "^default-src 'none'; " },
      example: "default-src 'none'; img-src data:",
    },
    'Referrer-Policy': {
      description: 'Links from the page do not name it.',
      required: true,
      schema: { type: 'string', const: 'no-referrer' },
      example: 'no-referrer',
    },
    'RateLimit-Policy': {
      description:
        `The policies that the request met: quota \`q\` in a window of \`w\` seconds (${rateLimitDraft}).`,
      schema: { type: 'string', maxLength: 200, pattern: '^"[a-z]+";q=[0-9]+;w=[0-9]+' },
      example: `"key";q=${key.quota};w=${key.windowSeconds}`,
    },
    RateLimit: {
      description: `What is left of each: \`r\` requests, whole again in \`t\` seconds (${rateLimitDraft}).`,
      schema: { type: 'string', maxLength: 200, pattern: '^"[a-z]+";r=[0-9]+;t=[0-9]+' },
      example: `"key";r=${Math.max(0, key.quota - 1)};t=${key.windowSeconds}`,
    },
    'Retry-After': {
      description: 'Whole seconds to wait before the next try.',
      schema: { type: 'integer', format: 'int32', minimum: 0, maximum: 86_400 },
      example: 12,
    },
    'WWW-Authenticate': {
      description: 'The challenge (RFC 6750 §3).',
      schema: { type: 'string', maxLength: 300, pattern: '^Bearer ' },
      example: `Bearer realm="${names.name}", error="invalid_token"`,
    },
    Link: {
      description:
        'Related documents (RFC 8288): of a list that pages, the next page, relative to the request.',
      schema: { type: 'string', maxLength: 16_384, pattern: '^<' },
      example: '<?partner=demo&limit=20&cursor=WyJub3Jk>; rel="next"',
    },
    'Idempotent-Replayed': {
      description: 'Stands on the answer of a request that was answered before.',
      schema: { type: 'string', const: 'true' },
      example: 'true',
    },
  }
}

/** A reference to each of these header fields. */
export function headerRefs(...fields: readonly string[]): Readonly<Record<string, Reference>> {
  return Object.fromEntries(fields.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

/** The parameters that several operations take. */
export function describeParameters({ names }: DocumentSettings): Readonly<Record<string, ParameterObject>> {
  const slug = { type: 'string', pattern: SLUG_PATTERN.source, maxLength: 80 }
  return {
    partner: {
      name: 'partner',
      in: 'query',
      description: 'Slug of the partner that the key belongs to.',
      required: true,
      schema: slug,
      example: 'demo',
    },
    slug: {
      name: 'slug',
      in: 'path',
      description: 'Slug of the profile.',
      required: true,
      schema: slug,
      example: 'nordlichter-frachtkontor',
    },
    version: {
      name: names.versionHeader,
      in: 'header',
      description: 'The version of the wire that you were written for. Absent means the current one.',
      required: false,
      schema: { type: 'string', const: API_VERSION },
      example: API_VERSION,
    },
    ifNoneMatch: {
      name: 'If-None-Match',
      in: 'header',
      description: 'The `ETag` of the answer that you have.',
      required: false,
      schema: { type: 'string', maxLength: 4096, pattern: '^(\\*|(W/)?"[^"]*".*)$' },
      example: '"9f86d081884c7d659a2feaa0c55ad015"',
    },
    idempotencyKey: {
      name: IDEMPOTENCY_HEADER,
      in: 'header',
      description:
        'Makes the request safe to repeat for 24 hours: the same body is answered as before, and done ' +
        'once. Up to 255 printable ASCII characters, bare or in quotes.',
      required: false,
      schema: {
        type: 'string',
        maxLength: 512,
        anyOf: [
          { type: 'string', maxLength: 255, pattern: '^[!#-~][ !#-~]*("[ !#-~]*"[ !#-~]*)*$' },
          { type: 'string', maxLength: 512, pattern: '^"([ !#-\\[\\]-~]|\\\\["\\\\]){1,255}"$' },
        ],
      },
      example: '7d1f0c1e-6b8a-4a53-9c60-2f6a35d3c9a1',
    },
  }
}

/** Which problems an operation can answer with, and what they look like: derived from what its route says. */

const problemCodes = Object.keys(PROBLEMS) as readonly ProblemCode[]

/** Every problem that the operation can answer with, in the order of the table. */
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
  const add = (holds: boolean, ...more: readonly ProblemCode[]): void => {
    if (holds) { for (const code of more) possible.add(code) }
  }
  if (route.access === 'key') {
    add(true, 'ambiguous_credentials', 'key_missing', 'key_invalid', 'key_revoked', 'key_expired')
    add(true, 'key_disabled', 'address_not_allowed', 'partner_missing', 'partner_mismatch')
    add(true, 'partner_suspended', 'rate_limited', 'store_unavailable')
    add(!allowBrowsers, 'browser_refused')
    add(route.scope !== undefined, 'scope_missing', 'module_inactive')
    add('cursor' in route.parameters, 'invalid_cursor')
    add(route.method === 'POST', 'body_too_large', 'unsupported_media_type', 'invalid_body')
    add(route.takesIdempotencyKey === true, 'idempotency_conflict', 'idempotency_mismatch')
  }
  return problemCodes.filter((code) => possible.has(code))
}

/** A problem as it would be answered. */
export function exampleProblem(
  code: ProblemCode,
  path: string,
  route: Pick<Route, 'method'> & { readonly scope?: (typeof SCOPES)[number] } | undefined,
  { problemBase }: DocumentSettings,
): ExampleObject {
  const scope = route?.scope ?? 'read:profiles'
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
  const value = problemDocument(code, members, problemBase, path, 'req_0m4x2k7c9pQ1')
  return { summary: value.title, value }
}

/** The schema of every problem (RFC 9457). */
export function problemSchema(): JsonSchema {
  return {
    description: 'What went wrong (RFC 9457). Decide by `code`; show `detail` to developers.',
    type: 'object',
    properties: {
      type: { description: 'Names the code.', type: 'string', format: 'uri', maxLength: 2048 },
      title: { description: 'The same for every problem of one code.', type: 'string', maxLength: 100 },
      status: {
        description: 'The status of the answer.',
        type: 'integer',
        format: 'int32',
        minimum: 400,
        maximum: 599,
      },
      code: { description: 'What went wrong. Codes are never renamed.', type: 'string', enum: problemCodes },
      detail: { description: 'What went wrong this time.', type: 'string', maxLength: 1000 },
      instance: { description: 'Where: the path.', type: 'string', maxLength: 8192 },
      request_id: {
        description: 'The same as `X-Request-Id`.',
        type: 'string',
        pattern: '^req_[0-9A-Za-z]+$',
        maxLength: 80,
      },
      required_scope: { description: 'The scope that is missing.', type: 'string', enum: SCOPES },
      required_module: { description: 'The module to activate.', type: 'string', enum: MODULE_NAMES },
      errors: {
        description: 'Everything that is wrong with parameters or body, at once.',
        type: 'array',
        maxItems: 8192,
        items: {
          type: 'object',
          properties: {
            parameter: { description: 'Name of the parameter or field.', type: 'string', maxLength: 8192 },
            pointer: {
              description: 'Place in the body (RFC 6901).',
              type: 'string',
              maxLength: 65_536,
              pattern: '^(/.*)?$',
            },
            detail: { description: 'What is wrong with it.', type: 'string', maxLength: 1000 },
          },
          required: ['detail'],
        },
      },
    },
    required: ['type', 'title', 'status', 'code', 'detail', 'instance', 'request_id'],
  }
}
