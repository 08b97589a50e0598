import { type ProblemCode, PROBLEMS } from '../http/problem.ts'
import { type EndpointName, moduleForScope } from '../model.ts'
import type { Route } from '../routes/route.ts'
import { RESPONSE_SCHEMAS } from '../schemas/responses.ts'
import { exampleProblem, headerRefs, problemsOf } from './components.ts'
import { isCached, parametersOf, requestBodyOf } from './inputs.ts'
import type { SchemaCollection } from './json-schema.ts'
import type { DocumentSettings, OperationObject, ResponseObject } from './model.ts'

const STATUS_DESCRIPTIONS: Readonly<Record<number, string>> = {
  200: 'Success.',
  201: 'Created, and stored durably.',
  304: 'The response that the client has is still current.',
  400: 'The request is malformed.',
  401: 'The key is missing or not valid.',
  403: 'The key does not permit this request.',
  404: 'Not found.',
  406: 'The endpoint does not produce an accepted media type.',
  408: 'The request did not arrive in time.',
  409: 'The first attempt is still in progress.',
  413: 'The body is too large.',
  414: 'The target is too long.',
  415: 'The body is not JSON.',
  422: 'The body is not valid.',
  429: 'Too many requests. Wait for the seconds in `Retry-After`.',
  431: 'The headers are too large.',
  500: 'The service failed.',
  503: 'The store is unavailable. Retry later.',
}

/** A sentence or two about each endpoint. */
const DESCRIPTIONS: Readonly<Record<EndpointName, string>> = {
  'verify-key':
    'Shows what a key permits. Failures are the same problems that any other endpoint would return.',
  widget:
    'Everything that a widget shows, in one call. Each part equals its own endpoint; countries and industries are those in use.',
  'recent-profiles': 'The newest profiles first.',
  profiles:
    'The matching profiles in pages. Follow `page.next_cursor`, or the `Link` header, to the last page.',
  profile: 'A complete profile.',
  banner: 'The current banner of the partner.',
  countries: 'All officially assigned ISO 3166-1 codes and `XK`, by name, for filters and forms.',
  industries: 'The industries of profiles, by name, for filters.',
  plans: 'The plans in the order of a pricing table.',
  'report-summary': 'Numbers of signups and requests with live keys in a period.',
  'report-activity': 'The latest activities, with masked personal data.',
  'sign-up':
    'Submits a signup form. A 201 confirms durable storage. With an `Idempotency-Key`, the request is safe to retry.',
  health: 'For load balancers and monitoring.',
  openapi: 'OpenAPI 3.1, generated from the route table of the service.',
  docs: 'The API reference as one self-contained page.',
  'api-catalog': 'Links to the documents of this service (RFC 9727, RFC 9264).',
}

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
      description: STATUS_DESCRIPTIONS[status] ?? '',
      headers: headerRefs(...headers, ...contentHeaders),
      content: {
        [route.mediaType ?? 'application/json']: { schema, example: schemas.example(schema, true) },
      },
    },
    ...(isCached(route) &&
      { 304: { description: STATUS_DESCRIPTIONS[304] ?? '', headers: headerRefs(...headers) } }),
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
        description: STATUS_DESCRIPTIONS[status] ?? '',
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
