import type { StaticDocument } from '../http/message.ts'
import { MAX_BODY_BYTES } from '../http/body.ts'
import { IDEMPOTENCY_HEADER } from '../http/headers.ts'
import { delay } from '../lib/promise.ts'
import { SLUG_PATTERN } from '../content/scalars.ts'
import { API_VERSION, BUILT_IN_MODULES } from '../model.ts'
import { endpointPath, operationIdOf, type Route } from '../routes/route.ts'
import { EXAMPLE_REQUEST_ID, REQUEST_ID_PATTERN } from '../schemas/fields.ts'
import { problemSchema } from '../schemas/responses.ts'
import template from './document.json' with { type: 'json' }
import { createSchemaCollection, type SchemaCollection } from './schema-collection.ts'
import type { ByName, DocumentSettings, ExampleObject, HeaderObject, ResponseObject } from './model.ts'
import { describeEvents } from './events.ts'
import { describeOperation, exampleProblem, hasOwnExample, type OperationObject, tagOf } from './operation.ts'

/**
 * Gives other requests a turn of the event loop. In Workers it does not: a timer ends with the request that set it, and
 * a document that requests share would never be made if the first one is cancelled.
 */
export async function otherTurn(): Promise<void> {
  if (!('WebSocketPair' in globalThis)) await delay(0)
}

export type OpenApiDocument = Awaited<ReturnType<typeof createDocument>>

export async function createDocument(routes: readonly Route[], settings: DocumentSettings) {
  const { names, basePath, title = 'Partner API', contact, terms, servers } = settings
  const { info, license, tags, parameters, securitySchemes, ...filled } = fill(template, settings)
  const headers: Record<string, HeaderObject> = filled.headers
  if (settings.limits.key.quota === 0) {
    for (const name of ['RateLimit-Policy', 'RateLimit']) {
      const { example: _, ...header } = headers[name]!
      headers[name] = header
    }
  }
  const schemas = createSchemaCollection()
  const responses: Record<string, ResponseObject> = {}
  schemas.response(problemSchema)
  const paths: Record<string, Partial<Record<'get' | 'post', OperationObject>>> = {}
  for (const route of routes) {
    await otherTurn()
    // Below the URL of a server, which ends with the base path.
    const path = endpointPath(route, names.name)
    const operation = describeOperation(route, basePath + path, schemas, { responses, headers }, settings)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation }
  }
  const operations = Object.values(paths).flatMap((path) => Object.values(path))
  return {
    openapi: '3.1.1' as const,
    info: {
      title,
      ...info,
      ...(terms && { termsOfService: terms }),
      ...(contact && { contact }),
      license,
    },
    servers: servers ??
      [{
        url: basePath || '/',
        description: `The ${basePath && 'base path at the '}origin of this document.`,
      }],
    tags: tagsOf(routes, tags, settings),
    paths,
    webhooks: webhooksOf(schemas),
    components: {
      schemas: sorted(schemas.named),
      responses,
      parameters,
      headers,
      examples: examplesOf(operations, settings),
      securitySchemes,
    },
  }
}

/** The tags of the routes, and that of events. */
function tagsOf(
  routes: readonly Route[],
  texts: ByName<string> & { readonly events: string },
  settings: DocumentSettings,
) {
  const { modules = BUILT_IN_MODULES } = settings
  const describe = (name: string, route: Route): string => {
    if (Object.hasOwn(texts, name)) return texts[name]!
    const { feature } = modules.list.find(({ scope }) => 'scope' in route && scope === route.scope)!
    return feature.replace(/(?<![.!?])$/, '.')
  }
  const byTag = new Map(routes.map((route) => [tagOf(route, settings), route]))
  return [
    ...Array.from(byTag, ([name, route]) => ({ name, description: describe(name, route) })),
    { name: 'events', description: texts.events },
  ]
}

/** The examples of problems that several operations share. */
function examplesOf(
  operations: readonly OperationObject[],
  settings: DocumentSettings,
): ByName<ExampleObject> {
  const { names, basePath } = settings
  const path = `${basePath}/${names.name}/public/profiles`
  const codes = new Set(operations.flatMap((one) => one['x-problems']))
  const shared = [...codes].filter((code) => !hasOwnExample(code))
  return sorted(
    Object.fromEntries(shared.map((code) => [code, exampleProblem(code, path, 'read:profiles', settings)])),
  )
}

/** A webhook for each type of event. */
function webhooksOf(schemas: SchemaCollection) {
  const { schema: envelope, ...shared } = template.webhook
  const operations = describeEvents().flatMap(({ name, data, events }) => {
    const members = { ...envelope.properties, data: schemas.name(name, data) }
    return events.map(({ type, text, example }) => {
      const properties = { ...members, type: { ...members.type, enum: [type] } }
      const content = { 'application/json': { schema: { ...envelope, properties }, example } }
      const operationId = operationIdOf({ name: `on-${type.replace('.', '-')}` })
      const about = { operationId, summary: type, description: text }
      return [type, { post: { ...about, ...shared, requestBody: { required: true, content } } }] as const
    })
  })
  return Object.fromEntries(operations)
}

/** Replaces the names in braces in the texts of a JSON value. */
export function fill<T>(
  json: T,
  { names, limits: { key }, maxStalenessMs, allowBrowsers }: DocumentSettings,
): T {
  const values: Readonly<Record<string, string | number>> = {
    ...names,
    version: API_VERSION,
    idempotencyHeader: IDEMPOTENCY_HEADER,
    slugPattern: SLUG_PATTERN.source,
    requestIdPattern: REQUEST_ID_PATTERN,
    requestId: EXAMPLE_REQUEST_ID,
    quota: key.quota,
    remaining: Math.max(0, key.quota - 1),
    windowSeconds: key.windowSeconds,
    maxStalenessMs,
    maxBodyKib: MAX_BODY_BYTES / 1024,
    browsers: allowBrowsers
      ? 'This service accepts requests from browsers. Keep keys out of browsers nevertheless.'
      : 'Requests from browser scripts (with `Origin` or `Sec-Fetch-Site`) are rejected with `browser_refused`, ' +
        'whatever key they carry.',
  }
  return JSON.parse(
    JSON.stringify(json).replace(
      /\{([a-z]+)\}/gi,
      (place, name: string) => name in values ? JSON.stringify(String(values[name])).slice(1, -1) : place,
    ),
  )
}

function sorted<T>(record: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => a < b ? -1 : 1))
}

/**
 * Links to the other documents (RFC 9727). References have no host, which only the client knows, and the path of
 * the first of `servers`: a proxy may remove the start of it.
 */
export function createApiCatalog({ names, basePath, servers }: DocumentSettings): StaticDocument {
  const catalog = '/.well-known/api-catalog'
  const { pathname = basePath } = servers?.[0] ? new URL(servers[0].url, 'http://relative.example') : {}
  // The root of the service is not a resource.
  const root = `${pathname.replace(/\/+$/, '')}/${names.name}`
  const api = `${root}/docs`
  const linkset = [
    { anchor: catalog, item: [{ href: api }] },
    {
      anchor: api,
      'service-desc': [{ href: `${root}/openapi.json`, type: 'application/json' }],
      'service-doc': [
        { href: api, type: 'text/html', hreflang: ['en'] },
        { href: `${api}.md`, type: 'text/markdown', hreflang: ['en'] },
      ],
      status: [{ href: `${root}/health`, type: 'application/json' }],
    },
  ]
  return {
    text: JSON.stringify({ linkset }),
    // RFC 9727 §2: a HEAD has the relations of §3.
    headers: ['Link', `<${catalog}>; rel="api-catalog", <${api}>; rel="item"`],
  }
}
