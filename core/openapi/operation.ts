import { type ProblemCode, PROBLEMS } from '../http/problem.ts'
import type { ParameterDef } from '../http/query.ts'
import { moduleForScope } from '../model.ts'
import type { Route } from '../routes/route.ts'
import { RESPONSE_SCHEMAS } from '../schemas/responses.ts'
import { exampleProblem, headerRefs, problemsOf } from './components.ts'
import type { SchemaCollection } from './json-schema.ts'
import type {
  DocumentSettings,
  OperationObject,
  ParameterObject,
  Reference,
  ResponseObject,
} from './model.ts'
import { ROUTE_INPUTS } from './route-inputs.ts'

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
    description: `${ROUTE_INPUTS[route.name].description} ${accessOf(route)}`,
    tags: [tagOf(route)],
    security: route.access === 'open' ? [] : [{ partnerKey: roles }, { bearerKey: roles }],
    parameters: parametersOf(route, schemas),
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

/** Whether responses to GET have an entity tag. */
function isCached(route: Route): boolean {
  return route.method === 'GET' && (route.access === 'key' || 'contentType' in route)
}

function parametersOf(route: Route, schemas: SchemaCollection): (ParameterObject | Reference)[] {
  const shared = (name: string, applies: boolean): Reference[] =>
    applies ? [{ $ref: `#/components/parameters/${name}` }] : []
  const keyed = route.access === 'key' ? route : undefined
  return [
    ...shared('slug', route.path.includes(':slug')),
    ...shared('partner', keyed?.method === 'GET'),
    ...Object.entries(keyed?.parameters ?? {}).map(([name, one]) =>
      queryParameter(route, name, one, schemas)
    ),
    ...shared('idempotencyKey', keyed?.takesIdempotencyKey === true),
    ...shared('ifNoneMatch', isCached(route)),
    ...shared('version', true),
  ]
}

function queryParameter(
  route: Route,
  name: string,
  { maxValues, absent }: ParameterDef<unknown>,
  schemas: SchemaCollection,
): ParameterObject {
  const [description, one] = ROUTE_INPUTS[route.name].parameters![name]!
  const repeatable = maxValues > 1
  // A made-up cursor would not work.
  const example = name === 'cursor' ? undefined : schemas.example(one)
  return {
    name,
    in: 'query',
    description,
    required: false,
    ...(repeatable && { style: 'form', explode: true }),
    schema: repeatable
      ? { type: 'array', items: one, maxItems: maxValues }
      : { ...one, ...(absent !== undefined && { default: absent }) },
    ...(example !== undefined && { example: repeatable ? [example] : example }),
  }
}

function requestBodyOf(route: Route, schemas: SchemaCollection): Pick<OperationObject, 'requestBody'> {
  const { body: schema } = ROUTE_INPUTS[route.name]
  if (schema === undefined) return {}
  return {
    requestBody: {
      description: 'A JSON object of at most 32 KiB. Undeclared members are rejected.',
      required: true,
      content: { 'application/json': { schema, example: schemas.example(schema) } },
    },
  }
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
