/** The OpenAPI document, made from the route table. */
import { API_VERSION, createServiceNames } from '../http/headers.ts'
import { DEFAULT_PROBLEM_BASE } from '../http/problem.ts'
import { DEFAULT_LIMITS } from '../limits/policies.ts'
import { MODULES } from '../policy/modules.ts'
import type { Route } from '../routes/route.ts'
import { endpointPath } from '../routes/router.ts'
import { describeHeaders, describeParameters, exampleProblem, problemSchema } from './components.ts'
import { createSchemaCollection } from './json-schema.ts'
import type {
  DocumentSettings,
  OpenApiDocument,
  OperationObject,
  Reference,
  ResponseObject,
} from './model.ts'
import { describeOperation, tagOf } from './operation.ts'

/**
 * Describes the service.
 *
 * @param routes The route table.
 * @param settings What differs from the defaults.
 */
export function createDocument(
  routes: readonly Route[],
  settings: Partial<DocumentSettings> = {},
): OpenApiDocument {
  const complete: DocumentSettings = {
    names: createServiceNames('service'),
    problemBase: DEFAULT_PROBLEM_BASE,
    limits: DEFAULT_LIMITS,
    maxStalenessMs: 1000,
    allowBrowsers: false,
    ...settings,
  }
  const { names, title = 'Partner API', contact, servers } = complete
  const schemas = createSchemaCollection()
  schemas.name('Problem', problemSchema())
  const paths: Record<string, Record<string, OperationObject>> = {}
  for (const route of routes) {
    const path = endpointPath(route, names.name)
    const operation = describeOperation(route, path, schemas, complete)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation }
  }
  // Scope and module differ from one operation to another, which therefore have examples of their own.
  const codes = new Set(
    Object.values(paths).flatMap((path) => Object.values(path)).flatMap((one) => one['x-problems']),
  )
  for (const code of ['scope_missing', 'module_inactive'] as const) codes.delete(code)
  return {
    openapi: '3.1.1',
    info: {
      title,
      summary: 'Keyed, scoped, server-side access for plugins and dashboards.',
      description: about(complete),
      version: API_VERSION,
      ...(contact && { contact }),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: servers ?? [{ url: '/', description: 'Wherever this document came from.' }],
    tags: tagsOf(routes),
    ...shareResponses(paths, {
      schemas: sorted(schemas.named),
      parameters: describeParameters(complete),
      headers: describeHeaders(complete),
      examples: sorted(Object.fromEntries(
        [...codes].map((
          code,
        ) => [code, exampleProblem(code, `/${names.name}/public/profiles`, undefined, complete)]),
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
    }),
  }
}

function about({ names, maxStalenessMs }: DocumentSettings): string {
  return [
    'A partner integration API. Every request carries the key of one partner, from a server and never from a browser, ' +
    `in \`${names.keyHeader}\` or as a bearer token, and names that partner.`,
    'Success is an object with `data`; everything else is a problem (RFC 9457) with a `code`. Every GET has a HEAD, and ' +
    'an OPTIONS that needs no key.',
    `A change that an operator makes binds within ${maxStalenessMs} ms.`,
  ].join('\n\n')
}

const ownTags: Readonly<Record<string, string>> = {
  keys: 'What a key is and may do.',
  service: 'The service itself, without a key and without any tenant’s data.',
}

function tagsOf(routes: readonly Route[]): OpenApiDocument['tags'] {
  const names = [...new Set(routes.map(tagOf))]
  return names.map((name) => ({
    name,
    description: ownTags[name] ?? `${MODULES[name as keyof typeof MODULES].feature}.`,
  }))
}

const responseNames: Readonly<Record<string, string>> = {
  304: 'NotModified',
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  406: 'NotAcceptable',
  408: 'RequestTimeout',
  409: 'Conflict',
  413: 'ContentTooLarge',
  414: 'UriTooLong',
  415: 'UnsupportedMediaType',
  422: 'UnprocessableContent',
  429: 'TooManyRequests',
  431: 'HeadersTooLarge',
  500: 'InternalError',
  503: 'ServiceUnavailable',
}

/** Puts responses that several operations have under a name: the status, and who has it when there are two kinds. */
function shareResponses(
  paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>,
  components: Omit<OpenApiDocument['components'], 'responses'>,
): Pick<OpenApiDocument, 'paths' | 'components'> {
  const uses = new Map<string, { status: string; first: string; count: number }>()
  const operations = Object.values(paths).flatMap((path) => Object.values(path))
  for (const { operationId, responses } of operations) {
    for (const [status, response] of Object.entries(responses)) {
      const text = JSON.stringify(response)
      const known = uses.get(text) ?? { status, first: operationId, count: 0 }
      uses.set(text, { ...known, count: known.count + 1 })
    }
  }
  const names = new Map<string, string>()
  const taken = new Set<string>()
  for (const [text, { status, first, count }] of [...uses].sort(([, a], [, b]) => b.count - a.count)) {
    const base = responseNames[status]
    if (count < 2 || base === undefined) continue
    const name = taken.has(base) ? `${base}As${first.charAt(0).toUpperCase()}${first.slice(1)}` : base
    taken.add(name)
    names.set(text, name)
  }
  const share = (response: ResponseObject | Reference): ResponseObject | Reference => {
    const name = names.get(JSON.stringify(response))
    return name === undefined ? response : { $ref: `#/components/responses/${name}` }
  }
  const mapped = mapValues(
    paths,
    (path) =>
      mapValues(path, (operation) => ({ ...operation, responses: mapValues(operation.responses, share) })),
  )
  const responses = Object.fromEntries([...names].map(([text, name]) => [name, JSON.parse(text)]))
  return { paths: mapped, components: { ...components, responses: sorted(responses) } }
}

function mapValues<T, U>(record: Readonly<Record<string, T>>, map: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]))
}

function sorted<T>(record: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => a < b ? -1 : 1))
}
