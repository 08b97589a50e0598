/** Routes that stay in the router of the host, behind the checks of the service. */
import { createResponseConverter, FetchRequest, type PeerInfo, toRequestError } from './http/fetch.ts'
import type { JsonObject } from './http/body.ts'
import type { HttpRequest, HttpResponse } from './http/message.ts'
import { assertKind, assertOptions, type OptionKinds } from './lib/options.ts'
import type { WebRequest, WebResponse } from './lib/web-globals.ts'
import { andThen, type MaybePromise } from './lib/promise.ts'
import { type EndpointMethod, takesBody } from './model.ts'
import type { Pipeline } from './pipeline.ts'
import { type EndpointGrant, type HostGrant, runWithTimeout, toHostGrant } from './routes/host-code.ts'
import type { EndpointDefinition } from './routes/host-endpoints.ts'
import type { HandlerContext, KeyedRoute } from './routes/route.ts'

/** A route of the host. */
export interface ProtectedRoute
  extends Pick<EndpointDefinition<string, never, never>, 'name' | 'scope' | 'summary' | 'limits'> {
  /** `GET` includes `HEAD`. */
  readonly method: EndpointMethod
  /** The complete path, for reports and `verify-key`: fixed segments, and `:name` for a parameter. */
  readonly path: `/${string}`
}

const routeKinds: OptionKinds<ProtectedRoute> = {
  name: 'a text',
  method: 'anything',
  path: 'a text',
  scope: 'anything',
  summary: 'a text',
  limits: 'anything',
}

/**
 * Puts the checks of the service before a route that stays in the router of your program: key, limits, partner,
 * scope and module. GET, HEAD and DELETE name the `partner` in their query; POST, PUT and PATCH in their JSON body.
 * The route is counted, logged and reported by its name, and listed by `verify-key`.
 *
 * @throws {TypeError} for a member that does not exist, and for a value of another kind.
 * @throws {RangeError} for a name that is taken, and for a scope that no module of the store has.
 * @example
 * ```ts
 * const invoice = api.protect(
 *   { name: 'invoice', method: 'GET', path: '/shop/invoices/:id', scope: 'read:orders', summary: 'Get an invoice' },
 *   async (request, { partner }, { id }: { id: string }) => new Response(await findInvoice(partner.slug, id)),
 * )
 * app.get('/shop/invoices/:id', (c) => invoice(c.req.raw, { id: c.req.param('id') }))
 * ```
 */
export type Protect = <Context extends object = PeerInfo>(
  route: ProtectedRoute,
  /**
   * Answers a request that has passed every check. The body of the request has not been read.
   * @param context What the function that `protect` returns was called with.
   */
  handler: (request: WebRequest, grant: EndpointGrant, context: Context) => MaybePromise<WebResponse>,
) => ProtectedHandler<Context>

/**
 * The handler of a protected route, which never rejects. The client's address is read from `context`, as `Deno.serve`
 * gives it, or with the option `trustedProxies` from the request.
 */
export type ProtectedHandler<Context> = (
  request: WebRequest,
  ...context: PeerInfo extends Context ? [context?: Context & PeerInfo] : [context: Context & PeerInfo]
) => Promise<WebResponse>

/** A request for a protected route that has passed every check. */
export interface Admission extends HostGrant {
  /** Names and values in turn; the response may have its own values of the first two. */
  readonly headers: readonly string[]
  /** The body of a request that names its partner there. */
  readonly body: JsonObject | undefined
}

/** Checks a request for a protected route. Never throws and never rejects: a refusal is a response. */
export type CheckRoute = (
  request: HttpRequest,
  respond: (admission: Admission) => MaybePromise<HttpResponse>,
) => MaybePromise<HttpResponse>

/**
 * @param add Adds a route to the tables of the service. Throws for one that cannot be added.
 * @returns Adds a route that the host serves. @param where The function that takes it, for errors.
 */
export function createRouteChecks(
  handle: Pipeline,
  add: (route: KeyedRoute) => void,
): (where: string, definition: ProtectedRoute) => CheckRoute {
  return (where, definition) => {
    assertOptions(where, definition, routeKinds)
    const { name, method, path, scope, summary, limits = ['key'] } = definition
    const route: KeyedRoute = {
      access: 'key',
      name,
      method,
      path,
      atRoot: true,
      scope,
      summary,
      limits,
      parameters: {},
      cacheBy: 'none',
      handle: () => ({}),
    }
    add(route)
    return (request, respond) =>
      handle(request, {
        route,
        respond(grant, headers, body) {
          const host = toHostGrant(grant)
          return respond({ grant: host.grant, abort: host.abort, headers, body })
        },
      })
  }
}

/** @param createFallback Makes the response in place of one that cannot be sent. */
export function createProtect(
  checkRoute: (where: string, definition: ProtectedRoute) => CheckRoute,
  handlerContext: Pick<HandlerContext, 'handlerTimeoutMs' | 'handlerFailed'>,
  createFallback: (error: unknown) => HttpResponse,
): Protect {
  const toResponse = createResponseConverter(createFallback)
  return (definition, handler) => {
    assertKind(`The endpoint ${definition?.name}: its handler`, handler, 'a function')
    const check = checkRoute('protect', definition)
    return async (request, ...[context = {}]) => {
      const respond = ({ grant, abort, headers }: Admission) => {
        const work = () => handler(request, grant, context as Parameters<typeof handler>[2])
        return andThen(runWithTimeout(work, definition.name, handlerContext, abort), (response) => {
          const own = withHeaders(response, headers)
          return { status: own.status, headers: [], body: undefined, own }
        })
      }
      try {
        // The host reads the body, too.
        const isReadable = takesBody(request.method) && !request.bodyUsed && !request.body?.locked
        const read = isReadable ? request.clone() : request
        return toResponse(await check(new FetchRequest(read, context), respond))
      } catch (error) {
        return toResponse(createFallback(toRequestError(request, error)))
      }
    }
  }
}

/** @param headers Names and values in turn; the response keeps its own values of the first two. */
function withHeaders(response: Response, headers: readonly string[]): Response {
  if (typeof response?.headers?.get !== 'function' || response.type === 'error') {
    throw new TypeError('The handler returned no Response.')
  }
  // A WebSocket: no response with this status can be made.
  if (response.status === 101) return response
  // Bun knows the type of a text until the body is read as a stream.
  const type = response.headers.get('content-type')
  // What the host returned may be immutable, or shared by requests.
  const own = new Response(response.body, response)
  if (type !== null) own.headers.set('Content-Type', type)
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index]!
    if (index >= 4 || !own.headers.has(name)) own.headers.set(name, headers[index + 1]!)
  }
  return own
}
