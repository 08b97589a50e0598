/** The header fields that requests and answers have, and the parameters that no route declares. */
import { SLUG_PATTERN } from '../content/slug.ts'
import { IDEMPOTENCY_FIELD } from '../signups/idempotency-key.ts'
import { VERSION } from '../version.ts'
import type { DocumentSettings, HeaderObject, ParameterObject, Reference } from './model.ts'

/** Draft 11 of the IETF's httpapi working group. */
const draft = 'draft-ietf-httpapi-ratelimit-headers-11'

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
      schema: { type: 'string', const: VERSION },
      example: VERSION,
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
      description: `The policies that the request met: quota \`q\` in a window of \`w\` seconds (${draft}).`,
      schema: { type: 'string', maxLength: 200, pattern: '^"[a-z]+";q=[0-9]+;w=[0-9]+' },
      example: `"key";q=${key.quota};w=${key.windowSeconds}`,
    },
    RateLimit: {
      description: `What is left of each: \`r\` requests, whole again in \`t\` seconds (${draft}).`,
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
export function headers(...fields: readonly string[]): Readonly<Record<string, Reference>> {
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
      schema: { type: 'string', const: VERSION },
      example: VERSION,
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
      name: IDEMPOTENCY_FIELD,
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
