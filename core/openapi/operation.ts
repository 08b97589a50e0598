/** A route as an operation of OpenAPI. */
import { type ProblemCode, PROBLEMS } from '../http/problem.ts'
import { maxRepetitions, type ParameterDef } from '../http/query.ts'
import { moduleForScope } from '../policy/modules.ts'
import type { KeyedRoute, Route } from '../routes/route.ts'
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

/** What each status means, in words. */
const STATUS_DESCRIPTIONS: Readonly<Record<number, string>> = {
  200: 'The answer.',
  201: 'Done, and kept: it survives whatever happens next.',
  304: 'The answer that you have still holds good.',
  400: 'The request is not understood.',
  401: 'The key is missing, or does not work.',
  403: 'The key works, and may not do this.',
  404: 'There is no such thing.',
  406: 'There is no answer in a media type that you accept.',
  408: 'The request did not arrive in time.',
  409: 'The first attempt is still running.',
  413: 'The body is too large.',
  414: 'The target is too long.',
  415: 'The body is not JSON.',
  422: 'The body is understood, and not acceptable.',
  429: 'Too many requests: wait for as long as `Retry-After` says.',
  431: 'The header fields are too large.',
  500: 'The service failed.',
  503: 'The store does not answer: try again later.',
}

/** The operation of a route. @param path The complete path. */
export function describeOperation(
  route: Route,
  path: string,
  schemas: SchemaCollection,
  settings: DocumentSettings,
): OperationObject {
  const problems = problemsOf(route, settings)
  return {
    operationId: operationIdOf(route),
    summary: route.summary,
    description: describe(route),
    tags: [tagOf(route)],
    security: securityOf(route),
    parameters: parametersOf(route, schemas),
    ...(route.access === 'key' && route.body !== undefined && {
      requestBody: requestBodyOf(route.body, schemas),
    }),
    responses: {
      ...successOf(route, schemas, settings),
      ...failuresOf(route, problems, path, settings),
    },
    'x-problems': problems,
  }
}

function operationIdOf({ name }: Route): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
}

/** The group that an operation stands in: the module that makes it available. */
export function tagOf(route: Route): string {
  if (route.access === 'open') return 'service'
  return route.scope === undefined ? 'keys' : moduleForScope(route.scope)
}

function describe(route: Route): string {
  const sentences = [route.description ?? `${route.summary}.`]
  if (route.access === 'open') sentences.push('Needs no key.')
  else if (route.scope === undefined) sentences.push('Any key in force may ask.')
  else {sentences.push(
      `Needs the scope \`${route.scope}\` and the active module \`${moduleForScope(route.scope)}\`.`,
    )}
  return sentences.join(' ')
}

/** Roles are allowed for every scheme since OpenAPI 3.1 (§4.8.30). */
function securityOf(route: Route): OperationObject['security'] {
  if (route.access === 'open') return []
  const roles = route.scope === undefined ? [] : [route.scope]
  return [{ partnerKey: roles }, { bearerKey: roles }]
}

const parameterRef = (name: string): Reference => ({ $ref: `#/components/parameters/${name}` })

function parametersOf(route: Route, schemas: SchemaCollection): (ParameterObject | Reference)[] {
  const keyed = route.access === 'key'
  const cached = route.method === 'GET' && (keyed || 'contentType' in route)
  return [
    ...(route.path.includes(':slug') ? [parameterRef('slug')] : []),
    ...(keyed && route.method === 'GET' ? [parameterRef('partner')] : []),
    ...(keyed
      ? Object.entries(route.parameters).map(([name, one]) => queryParameter(name, one, schemas))
      : []),
    ...(keyed && route.takesIdempotencyKey ? [parameterRef('idempotencyKey')] : []),
    ...(cached ? [parameterRef('ifNoneMatch')] : []),
    parameterRef('version'),
  ]
}

function queryParameter(
  name: string,
  { schema, description, repeatable, absent }: ParameterDef<unknown>,
  schemas: SchemaCollection,
): ParameterObject {
  const one = schemas.request(schema)
  // A cursor that is made up works nowhere.
  const example = name === 'cursor' ? undefined : schemas.example(one)
  return {
    name,
    in: 'query',
    description: `${description}.`,
    required: false,
    ...(repeatable && { style: 'form', explode: true }),
    schema: repeatable
      ? { type: 'array', items: one, maxItems: maxRepetitions }
      : { ...one, ...(absent !== undefined && { default: absent }) },
    ...(example !== undefined && { example: repeatable ? [example] : example }),
  }
}

function requestBodyOf(
  body: NonNullable<KeyedRoute['body']>,
  schemas: SchemaCollection,
): NonNullable<OperationObject['requestBody']> {
  const schema = schemas.request(body)
  return {
    description: 'One JSON object, at most 32 KiB; members that are not declared are refused.',
    required: true,
    content: { 'application/json': { schema, example: schemas.example(schema) } },
  }
}

/** The fields that every answer has, the service's own name in one of them. */
function commonHeaders({ names }: DocumentSettings): readonly string[] {
  return ['X-Request-Id', names.versionHeader, 'Cache-Control', 'X-Content-Type-Options']
}

const rateLimitHeaders = ['RateLimit-Policy', 'RateLimit']

function successOf(
  route: Route,
  schemas: SchemaCollection,
  settings: DocumentSettings,
): Readonly<Record<string, ResponseObject>> {
  const keyed = route.access === 'key'
  const status = keyed ? route.status ?? 200 : 200
  const isCached = route.method === 'GET' && (keyed || 'contentType' in route)
  const fields = [
    ...commonHeaders(settings),
    ...(isCached ? ['ETag', 'Vary'] : []),
    ...(keyed ? rateLimitHeaders : []),
  ]
  const more = [
    ...(keyed && 'cursor' in route.parameters ? ['Link'] : []),
    ...('headers' in route ? route.headers ?? [] : []),
  ]
  const ofBody = [
    ...(keyed && route.takesIdempotencyKey ? ['Idempotent-Replayed'] : []),
    ...('contentType' in route ? ['Content-Encoding'] : []),
  ]
  const schema = schemas.response(RESPONSE_SCHEMAS[route.name])
  const mediaType = 'mediaType' in route ? route.mediaType : 'application/json'
  return {
    [status]: {
      description: STATUS_DESCRIPTIONS[status] ?? '',
      headers: headerRefs(...fields, ...more, ...ofBody),
      content: { [mediaType]: { schema, example: schemas.example(schema) } },
    },
    ...(isCached &&
      { 304: { description: STATUS_DESCRIPTIONS[304] ?? '', headers: headerRefs(...fields, ...more) } }),
  }
}

function failuresOf(
  route: Route,
  problems: readonly ProblemCode[],
  path: string,
  settings: DocumentSettings,
): Readonly<Record<string, ResponseObject>> {
  const byStatus = Map.groupBy(problems, (code) => PROBLEMS[code].status)
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [status, {
      description: STATUS_DESCRIPTIONS[status] ?? '',
      headers: headerRefs(...commonHeaders(settings), ...failureFields(route, status, codes)),
      content: {
        'application/problem+json': {
          schema: { $ref: '#/components/schemas/Problem' },
          examples: Object.fromEntries(
            codes.map((code) => [
              code,
              code === 'scope_missing' || code === 'module_inactive'
                ? exampleProblem(code, path, route as KeyedRoute, settings)
                : { $ref: `#/components/examples/${code}` },
            ]),
          ),
        },
      },
    }]),
  )
}

function failureFields(route: Route, status: number, codes: readonly ProblemCode[]): readonly string[] {
  const challenged = status === 401 || codes.includes('scope_missing')
  // Before step 8 there is no key whose limits could be told; from there on every answer tells them.
  const limited = route.access === 'key' &&
    [400, 403, 404, 409, 413, 415, 422, 429, 500, 503].includes(status)
  return [
    ...(challenged ? ['WWW-Authenticate'] : []),
    ...(status === 429 || status === 503 ? ['Retry-After'] : []),
    ...(limited ? rateLimitHeaders : []),
  ]
}
