import * as v from 'valibot'
import { COUNTRY_CODES, LOCALE_PATTERN } from '../content/iso-codes.ts'
import { PROBLEM_CODES, type ProblemCode, problemDocument, PROBLEMS } from '../http/problem.ts'
import { BUILT_IN_MODULES, type Scope } from '../model.ts'
import { type KeyedRoute, type OpenRoute, operationIdOf, type Route } from '../routes/route.ts'
import { CURSOR_KEYWORDS, EXAMPLE_REQUEST_ID } from '../schemas/fields.ts'
import type { JsonSchema, Syntax } from '../schemas/inputs.ts'
import { convert } from '../schemas/json-schema.ts'
import type { Parameter } from '../schemas/requests.ts'
import type { AnySchema } from '../lib/schema-structure.ts'
import { pageSchema, RESPONSE_SCHEMAS } from '../schemas/responses.ts'
import texts from './document.json' with { type: 'json' }
import { describeHeaders } from './headers.ts'
import type { SchemaCollection } from './json-schema.ts'
import type {
  DocumentSettings,
  ExampleObject,
  HeaderObject,
  Named,
  ParameterObject,
  Reference,
  ResponseObject,
  ResponsesObject,
} from './model.ts'

/** A sentence or two about each endpoint, and one about each status. */
// Endpoints of the host's own may have the name of a property of every object.
const DESCRIPTIONS = new Map<string, string>(Object.entries(texts.endpoints))
const RESPONSES = new Map<string, v.GenericSchema>(Object.entries(RESPONSE_SCHEMAS))
const STATUSES: Readonly<Record<string, string>> = texts.statuses

export type OperationObject = ReturnType<typeof describeOperation>

/** Parts of `components` that operations refer to, by name. */
export interface SharedParts {
  /** Responses that several operations have: those of an operation are added. */
  readonly responses: Record<string, ResponseObject>
  readonly headers: Named<HeaderObject>
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
  const description = route.description ?? DESCRIPTIONS.get(route.name) ?? route.summary
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
  return route.method === 'GET' && (route.access === 'key' || 'contentType' in route)
}

function parametersOf(route: Route, schemas: SchemaCollection): (ParameterObject | Reference)[] {
  const shared = (name: string, applies: boolean): Reference[] =>
    applies ? [{ $ref: `#/components/parameters/${name}` }] : []
  const keyed = route.access === 'key' ? route : undefined
  return [
    ...pathParameters(route),
    ...shared('partner', keyed?.method === 'GET'),
    ...Object.entries(keyed?.parameters ?? {}).map(([name, input]) => queryParameter(name, input, schemas)),
    ...shared('idempotencyKey', keyed?.takesIdempotencyKey === true),
    ...shared('ifNoneMatch', isCached(route)),
    ...shared('version', true),
  ]
}

function pathParameters({ name: endpoint, path }: Route): (ParameterObject | Reference)[] {
  return Array.from(
    path.matchAll(/:(\w+)/g),
    ([, name = '']) =>
      DESCRIPTIONS.has(endpoint) ? { $ref: `#/components/parameters/${name}` } : {
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

/** The example of a schema, or of the items of its list. */
function exampleOf({ examples, enum: values, items }: JsonSchema): unknown {
  const item = items === undefined ? undefined : exampleOf(items)
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

const rateLimitHeaders = ['RateLimit-Policy', 'RateLimit']

function successOf(
  route: Route,
  schemas: SchemaCollection,
  shared: SharedParts,
  settings: DocumentSettings,
): ResponsesObject {
  const keyed = route.access === 'key' ? route : undefined
  const document = 'contentType' in route ? route : undefined
  const open: Partial<OpenRoute> = route.access === 'open' ? route : {}
  const headers = [
    ...commonHeaders(settings),
    ...(isCached(route) ? ['ETag', 'Vary'] : []),
    ...(keyed ? rateLimitHeaders : []),
    ...('cursor' in (keyed?.parameters ?? {}) ? ['Link'] : []),
    ...document?.headers ?? (open.hasPage ? pageHeaders : []),
  ]
  const contentHeaders = [
    ...(keyed?.takesIdempotencyKey ? ['Idempotent-Replayed'] : []),
    ...(document ? ['Content-Encoding'] : []),
  ]
  const status = keyed?.status ?? open.status ?? 200
  const content = [route, document?.alternate ?? []].flat().map((one) => {
    const known = RESPONSES.get(one.name)
    const schema = known ? schemas.response(known) : ownResponse(one, schemas)
    return [one.mediaType ?? 'application/json', { schema, example: schemas.example(schema, true) }]
  })
  if (open.hasPage) content.push(['text/html', pageContent(schemas)])
  return {
    [status]: {
      description: STATUSES[status]!,
      headers: describeHeaders([...headers, ...contentHeaders], route, status, settings, shared.headers),
      content: Object.fromEntries(content),
    },
    ...(isCached(route) &&
      {
        304: {
          description: STATUSES[304]!,
          headers: describeHeaders(headers, route, 304, settings, shared.headers),
        },
      }),
  }
}

/** Headers of one-time links; the policy is that of pages. */
const pageHeaders = ['Referrer-Policy', 'Content-Security-Policy']

function pageContent(schemas: SchemaCollection) {
  const schema = convert(RESPONSE_SCHEMAS.docs)
  return { schema, example: schemas.example(schema) }
}

/** The schema of the response of an endpoint of the host's own, inline: its titles may be those of other schemas. */
function ownResponse(route: Route, schemas: SchemaCollection): JsonSchema {
  const { response = v.unknown(), parameters = {} }: Partial<KeyedRoute> = route.access === 'key' ? route : {}
  const properties = {
    data: convert(response as v.GenericSchema),
    ...('cursor' in parameters && { page: schemas.response(pageSchema) }),
  }
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
  const byStatus = Map.groupBy(problems, (code) => PROBLEMS[code].status)
  return Object.fromEntries(
    [...byStatus].map(([status, all]) => {
      // Mocks send the first example, and the challenge of a 403 is that of a missing scope.
      const codes = all.toSorted((a, b) => Number(b === 'scope_missing') - Number(a === 'scope_missing'))
      const fields = [...commonHeaders(settings), ...failureHeaders(route, status, codes)]
      const response: ResponseObject = {
        description: STATUSES[status]!,
        headers: describeHeaders(fields, route, status, settings, headers),
        content: {
          'application/problem+json': {
            schema: { $ref: '#/components/schemas/Problem' },
            examples: Object.fromEntries(codes.map((code) => [code, exampleOf(code)])),
          },
          ...(isPage(route, status) && { 'text/html': pageContent(schemas) }),
        },
      }
      const names = [`Problem${status}`, ...(route.access === 'open' ? [`PublicProblem${status}`] : [])]
      const name = names.find((name) =>
        JSON.stringify(responses[name] ??= response) === JSON.stringify(response)
      )
      return [status, name === undefined ? response : { $ref: `#/components/responses/${name}` }]
    }),
  )
}

/** Whether a person may get a page in place of the problem: those of earlier steps are for programs. */
function isPage(route: Route, status: number): boolean {
  return 'hasPage' in route && [404, 410, 413, 429, 500, 503].includes(status)
}

function failureHeaders(route: Route, status: number, codes: readonly ProblemCode[]): readonly string[] {
  const isChallenged = status === 401 || codes.includes('scope_missing')
  // Limits are known from step 8 on.
  const isLimited = route.access === 'key' &&
    [400, 403, 404, 409, 413, 415, 422, 429, 500, 503].includes(status)
  return [
    ...(isPage(route, status) ? pageHeaders : ['Referrer-Policy']),
    ...(isChallenged ? ['WWW-Authenticate'] : []),
    ...(status === 429 || status === 503 ? ['Retry-After'] : []),
    ...(isLimited ? rateLimitHeaders : []),
  ]
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
  add(!('hasPage' in route), 'invalid_parameter')
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
  const members = code === 'scope_missing'
    ? { detail: `This key does not hold ${scope}.`, required_scope: scope }
    : code === 'module_inactive'
    ? { detail: `The module ${module} is not active for this partner.`, required_module: module }
    : code === 'invalid_parameter'
    ? { errors: [{ parameter: 'partner', detail: 'must not be repeated' }] }
    : code === 'invalid_body'
    ? { errors: [{ pointer: '/comment', detail: 'is not a member of this body' }] }
    : {}
  const value = problemDocument(code, members, problemBase, path, EXAMPLE_REQUEST_ID)
  return { summary: value.title, value }
}

/**
 * Patterns that every engine compiles: ASCII, because no two engines escape other characters alike. Of those they let
 * through what the service refuses by Unicode's categories.
 */
const oneLine = '[^\\x00-\\x1f\\x7f]*'
const line = `${oneLine}[^\\x00-\\x20\\x7f]${oneLine}`
/** No ASCII but letters and digits. */
const searchable = '[^\\x00-/:-@\\[-`{-\\x7f]'

const secondLetters = Array.from(Map.groupBy(COUNTRY_CODES, (code) => code[0]!), ([first, codes]) => {
  const seconds = codes.map((code) => code[1]).join('')
  return `[${first}${first.toLowerCase()}][${seconds}${seconds.toLowerCase()}]`
})
const syntaxes: Readonly<Record<Syntax, JsonSchema>> = {
  line: { pattern: `^${line}$` },
  'line or empty': { pattern: `^(?:${line})?$` },
  search: { pattern: searchable },
  cursor: CURSOR_KEYWORDS,
  locale: { pattern: LOCALE_PATTERN, maxLength: 255 },
  country: {
    anyOf: [
      { $ref: '#/components/schemas/CountryCode' },
      { type: 'string', pattern: `^(?:${secondLetters.join('|')})$`, maxLength: 2 },
    ],
  },
}
const SYNTAX: ReadonlyMap<unknown, JsonSchema> = new Map(Object.entries(syntaxes))

/** The schema of an input, with the keywords that its form of text stands for. */
function toJsonSchema(input: AnySchema): JsonSchema {
  return withSyntax(convert(input))
}

function withSyntax({ syntax, items, ...schema }: JsonSchema): JsonSchema {
  const form = SYNTAX.get(syntax)
  const { type, ...keywords } = {
    ...schema,
    ...(items && { items: withSyntax(items) }),
    ...(form ?? (syntax !== undefined && { syntax })),
  }
  if (type === undefined) return keywords
  // Generators of clients apply a keyword beside `anyOf` to the union: each schema of it has its own.
  const { anyOf, ...others } = keywords
  const isNullable = Array.isArray(type) && type.includes('null')
  return anyOf === undefined
    ? { type, ...keywords }
    : { ...others, anyOf: isNullable ? [...anyOf, { type: 'null' }] : anyOf }
}
