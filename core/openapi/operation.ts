import * as v from 'valibot'
import {
  PROBLEM_CODES,
  type ProblemCode,
  problemDocument,
  type ProblemMembers,
  PROBLEMS,
} from '../http/problem.ts'
import { BUILT_IN_MODULES, type Scope } from '../model.ts'
import { inactiveModule, missingScope } from '../policy/decide.ts'
import { isPage, type KeyedRoute, mediaTypesOf, operationIdOf, type Route } from '../routes/route.ts'
import { EXAMPLE_REQUEST_ID } from '../schemas/fields.ts'
import { convert, type JsonSchema } from '../schemas/json-schema.ts'
import type { Parameter } from '../schemas/check-input.ts'
import { pageSchema, RESPONSE_SCHEMAS } from '../schemas/responses.ts'
import texts from './document.json' with { type: 'json' }
import { describeHeaders } from './headers.ts'
import { toJsonSchema } from './input-schema.ts'
import type { SchemaCollection } from './schema-collection.ts'
import type {
  ByName,
  DocumentSettings,
  ExampleObject,
  HeaderObject,
  MediaTypeObject,
  ParameterObject,
  Reference,
  ResponseObject,
  ResponsesObject,
} from './model.ts'

/** A sentence or two about each endpoint, and one about each status. */
// Endpoints of the host's own may have the name of a property of every object.
const descriptions = new Map<string, string>(Object.entries(texts.endpoints))
const responseSchemas = new Map<string, v.GenericSchema>(Object.entries(RESPONSE_SCHEMAS))
const statuses: Readonly<Record<string, string>> = texts.statuses

export type OperationObject = ReturnType<typeof describeOperation>

/** Parts of `components` that operations refer to, by name. */
export interface SharedParts {
  /** Responses that several operations have: those of an operation are added. */
  readonly responses: Record<string, ResponseObject>
  readonly headers: ByName<HeaderObject>
}

/** @param path The complete path, for examples. */
export function describeOperation(
  route: Route,
  path: string,
  schemas: SchemaCollection,
  shared: SharedParts,
  settings: DocumentSettings,
) {
  const problems = problemsOf(route, settings)
  const description = route.description ?? descriptions.get(route.name) ?? route.summary
  // OpenAPI 3.1 allows roles for every scheme (§4.8.30).
  const roles = route.access === 'key' && route.scope !== undefined ? [route.scope] : []
  return {
    operationId: operationIdOf(route),
    summary: route.summary,
    description: `${description.replace(/(?<![.!?])$/, '.')} ${accessOf(route, settings)}`,
    tags: [tagOf(route, settings)],
    security: route.access === 'open' ? [] : [{ partnerKey: roles }, { bearerKey: roles }],
    parameters: parametersOf(route, schemas),
    ...requestBodyOf(route, schemas),
    responses: {
      ...successOf(route, schemas, shared, settings),
      ...failuresOf(route, problems, path, schemas, shared, settings),
    },
    'x-problems': problems,
  }
}

const moduleFor = (scope: Scope, { modules = BUILT_IN_MODULES }: DocumentSettings) =>
  modules.moduleFor(scope)!

/** The group of an operation: the module that enables it, unless an own one has the name of another group. */
export function tagOf(route: Route, settings: DocumentSettings): string {
  if (route.access === 'open') return 'service'
  if (route.scope === undefined) return 'keys'
  const module = moduleFor(route.scope, settings)
  return /^(?:keys|service|content|reports|signups|events)$/.test(module) ? `${module} module` : module
}

function accessOf(route: Route, settings: DocumentSettings): string {
  if (route.access === 'open') return 'Needs no key.'
  if (route.scope === undefined) return 'Works with any valid key.'
  return `Needs the scope \`${route.scope}\` and the active module \`${moduleFor(route.scope, settings)}\`.`
}

/** Whether responses to GET have an entity tag. */
function isCached(route: Route): boolean {
  return route.method === 'GET' && (route.access === 'key' || 'isDocument' in route)
}

function parametersOf(route: Route, schemas: SchemaCollection): (ParameterObject | Reference)[] {
  const shared = (name: string): Reference => ({ $ref: `#/components/parameters/${name}` })
  const parameters = pathParameters(route)
  if (route.access === 'key') {
    if (route.method === 'GET') parameters.push(shared('partner'))
    for (const [name, input] of Object.entries(route.parameters)) {
      parameters.push(queryParameter(name, input, schemas))
    }
    if (route.takesIdempotencyKey) parameters.push(shared('idempotencyKey'))
  }
  if (isCached(route)) parameters.push(shared('ifNoneMatch'))
  parameters.push(shared('version'))
  return parameters
}

function pathParameters({ name: endpoint, path }: Route): (ParameterObject | Reference)[] {
  return Array.from(
    path.matchAll(/:(\w+)/g),
    ([, name = '']) =>
      descriptions.has(endpoint) ? { $ref: `#/components/parameters/${name}` } : {
        name,
        in: 'path' as const,
        description: `The ${name.replaceAll('_', ' ')} in the path.`,
        required: true,
        schema: { type: 'string', minLength: 1, maxLength: 8192 },
        example: name,
      },
  )
}

function queryParameter(
  name: string,
  { schema, isList, absent, isRequired }: Parameter,
  schemas: SchemaCollection,
): ParameterObject {
  const { description = `The parameter \`${name}\`.`, ...one } = toJsonSchema(schema)
  // A list may need a value.
  const required = isRequired || isList && !v.is(schema, absent)
  const example = exampleOf(one) ?? (required ? schemas.example(one) : undefined)
  return {
    name,
    in: 'query',
    description,
    required,
    ...(isList && { style: 'form', explode: true }),
    schema: one,
    ...(example !== undefined && { example }),
  }
}

/** The example of a schema, or of the items of its list if one is enough. */
function exampleOf({ examples, enum: values, items, minItems }: JsonSchema): unknown {
  const item = items === undefined || Number(minItems) > 1 ? undefined : exampleOf(items)
  return examples?.[0] ?? values?.[0] ?? (item === undefined ? undefined : [item])
}

function requestBodyOf(route: Route, schemas: SchemaCollection) {
  if (route.access === 'open' || route.body === undefined) return {}
  const members = Object.entries(route.body)
  const schema: JsonSchema = {
    type: 'object',
    required: members.filter(([, { isRequired }]) => isRequired).map(([name]) => name),
    additionalProperties: false,
    properties: bodyMembers(route),
  }
  return {
    requestBody: {
      description: 'A JSON object of at most 32 KiB. Undeclared members are rejected.',
      required: true,
      content: { 'application/json': { schema, example: schemas.example(schema) } },
    },
  }
}

/** The schemas of the members of a body. */
export function bodyMembers(route: Route): Readonly<Record<string, JsonSchema>> {
  const members = Object.entries(route.access === 'key' && route.body || {})
  return Object.fromEntries(members.map(([name, { schema }]) => [name, toJsonSchema(schema)]))
}

function commonHeaders({ names }: DocumentSettings): readonly string[] {
  return ['X-Request-Id', names.versionHeader, 'Cache-Control', 'X-Content-Type-Options']
}

const limitHeaders = ['RateLimit-Policy', 'RateLimit']

function successOf(
  route: Route,
  schemas: SchemaCollection,
  shared: SharedParts,
  settings: DocumentSettings,
): ResponsesObject {
  const status = 'status' in route ? route.status ?? 200 : 200
  const headers = [...commonHeaders(settings), ...successHeaders(route)]
  const withContent = [...headers, ...contentHeaders(route)]
  const responses: Record<string, ResponseObject> = {
    [status]: {
      description: statuses[status]!,
      headers: describeHeaders(withContent, route, status, settings, shared.headers),
      content: successContent(route, schemas),
    },
  }
  if (isCached(route)) {
    responses[304] = {
      description: statuses[304]!,
      headers: describeHeaders(headers, route, 304, settings, shared.headers),
    }
  }
  return responses
}

function successHeaders(route: Route): readonly string[] {
  const names: string[] = []
  if (isCached(route)) names.push('ETag', 'Vary')
  if (route.access === 'key') {
    names.push(...limitHeaders)
    if ('cursor' in route.parameters) names.push('Link')
  } else if ('isDocument' in route) names.push(...route.headers ?? [])
  else if (isPage(route)) names.push(...pageHeaders)
  return names
}

/** The headers of a response with content, which a 304 does not have. */
function contentHeaders(route: Route): readonly string[] {
  if ('isDocument' in route) return ['Content-Encoding']
  return route.access === 'key' && route.takesIdempotencyKey ? ['Idempotent-Replayed'] : []
}

function successContent(route: Route, schemas: SchemaCollection): ByName<MediaTypeObject> {
  const [usual, ...others] = mediaTypesOf(route)
  const known = responseSchemas.get(route.name)
  const schema = known ? schemas.response(known) : ownResponse(route, schemas)
  const content = { [usual]: { schema, example: schemas.example(schema, true) } }
  for (const mediaType of others) content[mediaType] = documentContent(mediaType, schemas)
  return content
}

/** Headers of one-time links; the policy is that of pages. */
const pageHeaders = ['Referrer-Policy', 'Content-Security-Policy']

/** The content of a page or of Markdown in place of another media type. */
function documentContent(mediaType: string, schemas: SchemaCollection) {
  const schema = schemas.response(RESPONSE_SCHEMAS[mediaType === 'text/html' ? 'docs' : 'docs-markdown'])
  return { schema, example: schemas.example(schema) }
}

/** The schema of the response of an endpoint of the host's own, inline: its titles may be those of other schemas. */
function ownResponse(route: Route, schemas: SchemaCollection): JsonSchema {
  const { response = v.unknown(), parameters = {} }: Partial<KeyedRoute> = route.access === 'key' ? route : {}
  const properties: Record<string, JsonSchema> = { data: convert(response as v.GenericSchema) }
  if ('cursor' in parameters) properties['page'] = schemas.response(pageSchema)
  return { type: 'object', required: Object.keys(properties), properties }
}

/** Whether a problem names the scope or module of its operation. */
export function hasOwnExample(code: ProblemCode): boolean {
  return code === 'scope_missing' || code === 'module_inactive'
}

function failuresOf(
  route: Route,
  problems: readonly ProblemCode[],
  path: string,
  schemas: SchemaCollection,
  { responses, headers }: SharedParts,
  settings: DocumentSettings,
): ResponsesObject {
  const scope = route.access === 'key' && route.scope || 'read:profiles'
  const exampleOf = (code: ProblemCode) =>
    hasOwnExample(code)
      ? exampleProblem(code, path, scope, settings)
      : { $ref: `#/components/examples/${code}` }
  const described = ([status, all]: readonly [number, readonly ProblemCode[]]) => {
    // Mocks send the first example, and the challenge of a 403 is that of a missing scope.
    const codes = all.toSorted((a, b) => Number(b === 'scope_missing') - Number(a === 'scope_missing'))
    const fields = [...commonHeaders(settings), ...failureHeaders(route, status, codes)]
    const content: Record<string, MediaTypeObject> = {
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' },
        examples: Object.fromEntries(codes.map((code) => [code, exampleOf(code)])),
      },
    }
    if (isProblemPage(route, status)) content['text/html'] = documentContent('text/html', schemas)
    const response: ResponseObject = {
      description: statuses[status]!,
      headers: describeHeaders(fields, route, status, settings, headers),
      content,
    }
    const names = [`Problem${status}`]
    if (route.access === 'open') names.push(`PublicProblem${status}`)
    const shared = names.find((name) =>
      JSON.stringify(responses[name] ??= response) === JSON.stringify(response)
    )
    return [status, shared === undefined ? response : { $ref: `#/components/responses/${shared}` }] as const
  }
  const byStatus = Map.groupBy(problems, (code) => PROBLEMS[code].status)
  return Object.fromEntries([...byStatus].map(described))
}

/** Whether a person may get a page in place of the problem: those of earlier steps are for programs. */
function isProblemPage(route: Route, status: number): boolean {
  return isPage(route) && [404, 410, 413, 429, 500, 503].includes(status)
}

function failureHeaders(route: Route, status: number, codes: readonly ProblemCode[]): readonly string[] {
  const names = [...isProblemPage(route, status) ? pageHeaders : ['Referrer-Policy']]
  if (status === 401 || codes.includes('scope_missing')) names.push('WWW-Authenticate')
  if (status === 429 || status === 503) names.push('Retry-After')
  // Limits are known from step 8 on.
  const isLimited = [400, 403, 404, 409, 413, 415, 422, 429, 500, 503].includes(status)
  if (route.access === 'key' && isLimited) names.push(...limitHeaders)
  return names
}

/** Every problem of the operation, in the order of the table. */
function problemsOf(route: Route, { allowBrowsers }: DocumentSettings): readonly ProblemCode[] {
  const possible = new Set<ProblemCode>([
    'malformed_request',
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
  add(!isPage(route), 'invalid_parameter')
  add(route.method === 'POST', 'body_too_large')
  if (route.access === 'key') {
    add(true, 'ambiguous_credentials', 'key_missing', 'key_invalid', 'key_revoked', 'key_expired')
    add(true, 'key_disabled', 'address_not_allowed', 'partner_missing', 'partner_mismatch')
    add(true, 'partner_suspended', 'rate_limited', 'store_unavailable', 'overloaded')
    add(!allowBrowsers, 'browser_refused')
    add(route.scope !== undefined, 'scope_missing', 'module_inactive')
    add(route.selfService !== undefined, 'self_service_disabled')
    add('cursor' in route.parameters, 'invalid_cursor')
    add(route.method === 'POST', 'unsupported_media_type', 'invalid_body')
    add(route.takesIdempotencyKey === true, 'idempotency_conflict', 'idempotency_mismatch')
  }
  return PROBLEM_CODES.filter((code) => possible.has(code))
}

export function exampleProblem(
  code: ProblemCode,
  path: string,
  scope: Scope,
  settings: DocumentSettings,
): ExampleObject {
  const { problemBase } = settings
  const module = moduleFor(scope, settings)
  const membersOf: { readonly [code in ProblemCode]?: ProblemMembers } = {
    scope_missing: missingScope(scope),
    module_inactive: inactiveModule(module),
    invalid_parameter: { errors: [{ parameter: 'partner', detail: 'must not be repeated' }] },
    invalid_body: { errors: [{ pointer: '/comment', detail: 'is not a member of this body' }] },
  }
  const members = membersOf[code] ?? {}
  const value = problemDocument(code, members, problemBase, path, EXAMPLE_REQUEST_ID)
  return { summary: value.title, value }
}
