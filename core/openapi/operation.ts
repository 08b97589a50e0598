import { type ProblemCode, problemDocument, PROBLEMS } from '../http/problem.ts'
import { type EndpointName, moduleForScope, type Scope } from '../model.ts'
import type { Route } from '../routes/route.ts'
import { EXAMPLE_REQUEST_ID, PROBLEM_CODES, RESPONSE_SCHEMAS } from '../schemas/responses.ts'
import texts from './document.json' with { type: 'json' }
import { isCached, parametersOf, requestBodyOf } from './inputs.ts'
import type { SchemaCollection } from './json-schema.ts'
import type { DocumentSettings, ExampleObject, OperationObject, Reference, ResponseObject } from './model.ts'

/** A sentence or two about each endpoint, and one about each status. */
const DESCRIPTIONS: Readonly<Record<EndpointName, string>> = texts.endpoints
const STATUSES: Readonly<Record<string, string>> = texts.statuses

/** @param path The complete path. @param shared Responses that several operations have, by name. */
export function describeOperation(
  route: Route,
  path: string,
  schemas: SchemaCollection,
  shared: Record<string, ResponseObject>,
  settings: DocumentSettings,
): OperationObject {
  const problems = problemsOf(route, settings)
  // OpenAPI 3.1 allows roles for every scheme (§4.8.30).
  const roles = route.access === 'key' && route.scope !== undefined ? [route.scope] : []
  return {
    operationId: route.name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase()),
    summary: route.summary,
    description: `${DESCRIPTIONS[route.name]} ${accessOf(route)}`,
    tags: [tagOf(route)],
    security: route.access === 'open' ? [] : [{ partnerKey: roles }, { bearerKey: roles }],
    parameters: parametersOf(route),
    ...requestBodyOf(route, schemas),
    responses: {
      ...successOf(route, schemas, settings),
      ...failuresOf(route, problems, path, shared, settings),
    },
    'x-problems': problems,
  }
}

/** The group of an operation: the module that enables it. */
export function tagOf(route: Route): string {
  if (route.access === 'open') return 'service'
  return route.scope === undefined ? 'keys' : moduleForScope(route.scope)
}

function accessOf(route: Route): string {
  if (route.access === 'open') return 'Needs no key.'
  if (route.scope === undefined) return 'Works with any valid key.'
  return `Needs the scope \`${route.scope}\` and the active module \`${moduleForScope(route.scope)}\`.`
}

function commonHeaders({ names }: DocumentSettings): readonly string[] {
  return ['X-Request-Id', names.versionHeader, 'Cache-Control', 'X-Content-Type-Options']
}

const rateLimitHeaders = ['RateLimit-Policy', 'RateLimit']

function successOf(
  route: Route,
  schemas: SchemaCollection,
  settings: DocumentSettings,
): OperationObject['responses'] {
  const keyed = route.access === 'key' ? route : undefined
  const document = 'contentType' in route ? route : undefined
  const headers = [
    ...commonHeaders(settings),
    ...(isCached(route) ? ['ETag', 'Vary'] : []),
    ...(keyed ? rateLimitHeaders : []),
    ...('cursor' in (keyed?.parameters ?? {}) ? ['Link'] : []),
    ...document?.headers ?? [],
  ]
  const contentHeaders = [
    ...(keyed?.takesIdempotencyKey ? ['Idempotent-Replayed'] : []),
    ...(document ? ['Content-Encoding'] : []),
  ]
  const status = keyed?.status ?? 200
  const schema = schemas.response(RESPONSE_SCHEMAS[route.name])
  return {
    [status]: {
      description: STATUSES[status]!,
      headers: headerRefs(...headers, ...contentHeaders),
      content: {
        [route.mediaType ?? 'application/json']: { schema, example: schemas.example(schema, true) },
      },
    },
    ...(isCached(route) &&
      { 304: { description: STATUSES[304]!, headers: headerRefs(...headers) } }),
  }
}

/** Whether a problem names the scope or module of its operation. */
export function hasOwnExample(code: ProblemCode): boolean {
  return code === 'scope_missing' || code === 'module_inactive'
}

function failuresOf(
  route: Route,
  problems: readonly ProblemCode[],
  path: string,
  shared: Record<string, ResponseObject>,
  settings: DocumentSettings,
): OperationObject['responses'] {
  const scope = route.access === 'key' && route.scope || 'read:profiles'
  const exampleOf = (code: ProblemCode) =>
    hasOwnExample(code)
      ? exampleProblem(code, path, scope, settings)
      : { $ref: `#/components/examples/${code}` }
  const byStatus = Map.groupBy(problems, (code) => PROBLEMS[code].status)
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => {
      const response: ResponseObject = {
        description: STATUSES[status]!,
        headers: headerRefs(...commonHeaders(settings), ...failureHeaders(route, status, codes)),
        content: {
          'application/problem+json': {
            schema: { $ref: '#/components/schemas/Problem' },
            examples: Object.fromEntries(codes.map((code) => [code, exampleOf(code)])),
          },
        },
      }
      const names = [`Problem${status}`, ...(route.access === 'open' ? [`PublicProblem${status}`] : [])]
      const name = names.find((name) =>
        JSON.stringify(shared[name] ??= response) === JSON.stringify(response)
      )
      return [status, name === undefined ? response : { $ref: `#/components/responses/${name}` }]
    }),
  )
}

function failureHeaders(route: Route, status: number, codes: readonly ProblemCode[]): readonly string[] {
  const isChallenged = status === 401 || codes.includes('scope_missing')
  // Limits are known from step 8 on.
  const isLimited = route.access === 'key' &&
    [400, 403, 404, 409, 413, 415, 422, 429, 500, 503].includes(status)
  return [
    ...(isChallenged ? ['WWW-Authenticate'] : []),
    ...(status === 429 || status === 503 ? ['Retry-After'] : []),
    ...(isLimited ? rateLimitHeaders : []),
  ]
}

function headerRefs(...names: readonly string[]): Readonly<Record<string, Reference>> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

/** Every problem of the operation, in the order of the table. */
function problemsOf(route: Route, { allowBrowsers }: DocumentSettings): readonly ProblemCode[] {
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
