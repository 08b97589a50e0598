import type { StaticDocument } from '../http/message.ts'
import { type Module, MODULES } from '../model.ts'
import { endpointPath, type Route } from '../routes/route.ts'
import { problemSchema } from '../schemas/responses.ts'
import { API_VERSION } from '../wire.ts'
import { describeHeaders, describeParameters, exampleProblem } from './components.ts'
import { createSchemaCollection } from './json-schema.ts'
import type { DocumentSettings, OperationObject, ResponseObject } from './model.ts'
import { describeOperation, hasOwnExample, tagOf } from './operation.ts'

export type OpenApiDocument = ReturnType<typeof createDocument>

export function createDocument(routes: readonly Route[], settings: DocumentSettings) {
  const { names, title = 'Partner API', contact, terms, servers } = settings
  const schemas = createSchemaCollection()
  const responses: Record<string, ResponseObject> = {}
  schemas.response(problemSchema)
  const paths: Record<string, Partial<Record<'get' | 'post', OperationObject>>> = {}
  for (const route of routes) {
    const path = endpointPath(route, names.name)
    const operation = describeOperation(route, path, schemas, responses, settings)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation }
  }
  const codes = new Set(
    Object.values(paths).flatMap((path) => Object.values(path)).flatMap((one) => one['x-problems']),
  )
  const example = `/${names.name}/public/profiles`
  return {
    openapi: '3.1.1' as const,
    info: {
      title,
      summary: 'Keyed, scoped, server-side access for plugins and dashboards.',
      description: about(settings),
      version: API_VERSION,
      ...(terms && { termsOfService: terms }),
      ...(contact && { contact }),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: servers ?? [{ url: '/', description: 'The origin of this document.' }],
    tags: tagsOf(routes),
    paths,
    components: {
      schemas: sorted(schemas.named),
      responses,
      parameters: describeParameters(settings),
      headers: describeHeaders(settings),
      examples: sorted(Object.fromEntries(
        [...codes].filter((code) => !hasOwnExample(code))
          .map((code) => [code, exampleProblem(code, example, 'read:profiles', settings)]),
      )),
      securitySchemes: {
        partnerKey: {
          type: 'apiKey',
          in: 'header',
          name: names.keyHeader,
          description: 'The partner key. It is a secret: send it from servers only.',
        },
        bearerKey: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'partner key',
          description: 'The same key as a bearer token (RFC 6750).',
        },
      },
    },
  }
}

function about({ names, maxStalenessMs }: DocumentSettings): string {
  return [
    'A partner integration API. Every request carries the key of one partner, from a server and never from a browser, ' +
    `in \`${names.keyHeader}\` or as a bearer token, and names that partner.`,
    'A success is an object with `data`; everything else is a problem (RFC 9457) with a `code`. Every GET also supports ' +
    'HEAD, and every path OPTIONS, without a key.',
    `Administrative changes take effect within ${maxStalenessMs} ms.`,
  ].join('\n\n')
}

const ownTags: Readonly<Record<string, string>> = {
  keys: 'The key and its permissions.',
  service: 'The service itself: no key, and no partner data.',
}

function tagsOf(routes: readonly Route[]) {
  return [...new Set(routes.map(tagOf))].map((name) => ({
    name,
    description: ownTags[name] ?? `${MODULES[name as Module].feature}.`,
  }))
}

function sorted<T>(record: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => a < b ? -1 : 1))
}

/** Links to the other documents (RFC 9727). References are relative to the catalog's own address: only the client knows the host name that it used. */
export function createCatalog(name: string): StaticDocument {
  const catalog = '/.well-known/api-catalog'
  // The root of the service is no resource.
  const api = `/${name}/docs`
  const linkset = [
    { anchor: catalog, item: [{ href: api }] },
    {
      anchor: api,
      'service-desc': [{ href: `/${name}/openapi.json`, type: 'application/json' }],
      'service-doc': [{ href: `/${name}/docs`, type: 'text/html', hreflang: ['en'] }],
      status: [{ href: `/${name}/health`, type: 'application/json' }],
    },
  ]
  return {
    text: JSON.stringify({ linkset }),
    // RFC 9727 §2: a HEAD has the relations of §3.
    headers: ['Link', `<${catalog}>; rel="api-catalog", <${api}>; rel="item"`],
  }
}
