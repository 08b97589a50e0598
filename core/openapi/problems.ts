/** Which problems an operation can answer with, and what they look like: derived from what its route says. */
import { type ProblemCode, PROBLEMS, titleOf } from '../http/problem.ts'
import { MODULE_NAMES, moduleFor } from '../policy/modules.ts'
import { SCOPES } from '../policy/scopes.ts'
import type { Route } from '../routes/route.ts'
import type { DocumentSettings, ExampleObject, JsonSchema } from './model.ts'

const codes = Object.keys(PROBLEMS) as readonly ProblemCode[]

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
  return codes.filter((code) => possible.has(code))
}

/** A problem as it would be answered. */
export function exampleProblem(
  code: ProblemCode,
  path: string,
  route: Pick<Route, 'method'> & { readonly scope?: (typeof SCOPES)[number] } | undefined,
  { problemBase }: DocumentSettings,
): ExampleObject {
  const { status, detail } = PROBLEMS[code]
  const title = titleOf(code)
  const scope = route?.scope ?? 'read:profiles'
  const shown = code === 'scope_missing'
    ? { detail: `This key does not hold ${scope}.`, required_scope: scope }
    : code === 'module_inactive'
    ? {
      detail: `The module ${moduleFor(scope)} is not active for this partner.`,
      required_module: moduleFor(scope),
    }
    : code === 'invalid_parameter'
    ? { errors: [{ parameter: 'partner', detail: 'must not be repeated' }] }
    : code === 'invalid_body'
    ? { errors: [{ pointer: '/partner', detail: 'is required' }] }
    : {}
  return {
    summary: title,
    value: {
      type: `${problemBase}/${code.replaceAll('_', '-')}`,
      title,
      status,
      code,
      detail,
      instance: path,
      request_id: 'req_0m4x2k7c9pQ1',
      ...shown,
    },
  }
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
      code: { description: 'What went wrong. Codes are never renamed.', type: 'string', enum: codes },
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
