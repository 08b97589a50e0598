/** The checks of a service as middleware: for Express and Connect, and for Fastify. */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { finished } from 'node:stream'
import type { PartnerApi } from '../../core/api.ts'
import { encode, type HttpResponse } from '../../core/http/message.ts'
import { Problem } from '../../core/http/problem.ts'
import { internalsOf } from '../../core/internals.ts'
import { assertOptions } from '../../core/lib/options.ts'
import type { MaybePromise } from '../../core/lib/promise.ts'
import type { ProtectedRoute } from '../../core/protect.ts'
import type { EndpointGrant } from '../../core/routes/host-code.ts'
import {
  defaultTarget,
  type ListenerOptions,
  type NodeRequest,
  type NodeResponse,
  sendResponse,
} from './node-listener.ts'
import { type HostClient, MountedHttpRequest, toOriginForm } from './node-request.ts'
import { setHeaders } from './node-response.ts'

/** The part of a request of Fastify that a guard needs. */
export interface GuardedRequest {
  /** Node's request. */
  readonly raw: NodeRequest
  /** The body as Fastify has parsed it. */
  body?: unknown
}

/** The part of a reply of Fastify that a guard needs. */
export interface GuardedReply {
  /** Node's response. */
  readonly raw: NodeResponse
  /** Leaves the response to the caller. */
  hijack(): unknown
  /** The fields of the reply, of which Node's response knows nothing. */
  getHeaders(): Readonly<Record<string, number | string | string[] | undefined>>
  /** Whether the reply has a field. */
  hasHeader(name: string): boolean
  /** Sets a field of the reply. */
  header(name: string, value: string): unknown
}

/** The checks of the service before a route of the host's. */
export interface Guard<Request extends NodeRequest = NodeRequest> {
  /** Middleware for Express and Connect. `next` gets what an option throws. */
  (request: Request, response: NodeResponse, next: (error?: unknown) => void): Promise<void>
  /** A `preHandler` for Fastify. */
  fastify(request: Request & GuardedRequest, reply: GuardedReply): Promise<void>
}

/** The grants of requests of Node and of Fastify. */
const grants = new WeakMap<object, EndpointGrant>()

/**
 * The partner and the key of a request that a guard has let through.
 *
 * @param request Of Express, Connect, Fastify or Node.
 * @throws {Error} for any other request.
 * @example
 * ```ts
 * app.get('/invoices', guard, (request, response) => response.json(invoicesOf(grantOf(request).partner.slug)))
 * ```
 */
export function grantOf(request: object): EndpointGrant {
  const grant = grants.get(request)
  if (grant !== undefined) return grant
  throw new Error('No guard has let this request through: put one before its handler.')
}

/**
 * Puts the checks of the service before a route of Express, Connect or Fastify: key, limits, partner, scope and
 * module, as `protect` does. A refused request gets a problem, and does not reach the handler. Any other is counted
 * and logged with the status of the host's response, when that ends. Time limits are those of the host.
 *
 * A body that the host has parsed is read as parsed; one that it has not is left parsed in `request.body`. The response
 * gets `X-Request-Id`, the version and the `RateLimit` fields and, unless it has its own, `Cache-Control: private,
 * no-store` and `Vary`.
 *
 * @throws {TypeError} for a member or an option that does not exist, and for a value of another kind.
 * @throws {RangeError} for a name that is taken, and for a scope that no module of the store has.
 * @example
 * ```ts
 * const guard = createGuard(api, {
 *   name: 'invoice',
 *   method: 'GET',
 *   path: '/invoices/:id',
 *   scope: 'read:orders',
 *   summary: 'Get an invoice',
 * })
 * app.get('/invoices/:id', guard, handler)
 * fastify.get('/invoices/:id', { preHandler: guard.fastify }, handler)
 * ```
 */
export function createGuard<Request extends NodeRequest = NodeRequest>(
  api: PartnerApi,
  route: ProtectedRoute,
  options: ListenerOptions<Request> = {},
): Guard<Request> {
  assertOptions('createGuard', options, { address: 'a function', target: 'a function' })
  const { address: addressOf, target: targetOf } = options
  const check = internalsOf(api).checkRoute('createGuard', route)

  /**
   * @param host The request of the host. @param request Node's.
   * @param admit Called once the request has passed every check.
   * @returns The response to a request that is refused.
   */
  async function checkRequest(
    host: Request & { body?: unknown },
    request: IncomingMessage,
    response: ServerResponse,
    admit: (headers: readonly string[]) => void,
  ): Promise<HttpResponse | undefined> {
    if (response.headersSent) {
      throw new Error('The response has begun: put the guard before what writes to it.')
    }
    const target = toOriginForm(
      targetOf === undefined ? defaultTarget(request) : targetOf(host),
      request.method,
    )
    const client = addressOf && { address: addressOf(host) }
    const hostBody = findHostBody(host, request)
    const httpRequest = new GuardedHttpRequest(request, response, target ?? '/', client, hostBody)
    const admitted = Promise.withResolvers<undefined>()
    const checked = check(httpRequest, ({ grant, headers, body }) => {
      // The host has begun a response in the meantime, for instance at a time limit of its own.
      if (response.headersSent) return whenEnded(response)
      grants.set(host, grant)
      grants.set(request, grant)
      // Parsers of the host leave a body alone that has this mark of Connect's.
      if (hostBody === undefined && body !== undefined) Object.assign(host, { body, _body: true })
      admit(headers)
      admitted.resolve(undefined)
      return whenEnded(response)
    })
    const refusal = await Promise.race([admitted.promise, checked])
    // The fields of a guard before this one are those of another request id.
    if (refusal !== undefined) keptFields.delete(response)
    return refusal
  }

  async function guard(request: Request, nodeResponse: NodeResponse, next: (error?: unknown) => void) {
    const response = nodeResponse as ServerResponse
    try {
      const refusal = await checkRequest(
        request,
        request as NodeRequest as IncomingMessage,
        response,
        (headers) => {
          for (let index = 0; index < headers.length; index += 2) {
            const name = headers[index]!
            if (index >= ownEntries || !response.hasHeader(name)) {
              response.setHeader(name, headers[index + 1]!)
            }
          }
          keepFields(response, headers.slice(ownEntries))
        },
      )
      if (refusal !== undefined) {
        return sendResponse(response, refusal)
      }
    } catch (error) {
      return next(error)
    }
    next()
  }

  async function fastify(request: Request & GuardedRequest, reply: GuardedReply): Promise<void> {
    const response = reply.raw as ServerResponse
    const refusal = await checkRequest(request, request.raw as IncomingMessage, response, (headers) => {
      for (let index = 0; index < headers.length; index += 2) {
        const name = headers[index]!
        if (index >= ownEntries || !reply.hasHeader(name)) reply.header(name, headers[index + 1]!)
      }
      keepFields(response, headers.slice(ownEntries))
    })
    if (refusal === undefined) return
    reply.hijack()
    // What hooks have set stays, as it does in Express.
    const own = response.headersSent ? [] : Object.entries(reply.getHeaders())
    for (const [name, value] of own) if (value !== undefined) response.setHeader(name, value)
    sendResponse(response, refusal)
  }

  return Object.assign(guard, { fastify })
}

/** How many entries of the headers of an admission the host may replace: two names and their values. */
const ownEntries = 4

class GuardedHttpRequest extends MountedHttpRequest {
  /** What the host has made of the body; absent if it has not read it. */
  readonly #hostBody: HostBody | undefined

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    target: string,
    client: HostClient | undefined,
    hostBody: HostBody | undefined,
  ) {
    super(request, response, target, client)
    this.#hostBody = hostBody
  }

  get parsedBody(): { readonly value: unknown } | undefined {
    return this.#hostBody?.bytes === undefined ? this.#hostBody : undefined
  }

  override body(maxBytes: number): MaybePromise<Uint8Array> {
    const bytes = this.#hostBody?.bytes
    if (bytes === undefined) return this.#readToEnd(maxBytes)
    if (bytes.length > maxBytes) throw new Problem('body_too_large')
    return bytes
  }

  /** A parser of the host's that runs later leaves a request alone whose stream has ended. */
  async #readToEnd(maxBytes: number): Promise<Uint8Array> {
    const bytes = await super.body(maxBytes)
    if (this.hasBody && !this.request.readableEnded) await once(this.request.resume(), 'end')
    return bytes
  }
}

/** What the host has made of a body. */
interface HostBody {
  readonly value: unknown
  /** The body as it arrived, which the host has not parsed. */
  readonly bytes: Uint8Array | undefined
}

/** What the host has made of a body; some parsers leave an empty object for one that they have not read. */
function findHostBody(
  { body: value }: { readonly body?: unknown },
  request: IncomingMessage,
): HostBody | undefined {
  const isUnread = request.readableDidRead === false && request.readableEnded === false
  if (value === undefined || isUnread) return undefined
  return { value, bytes: value instanceof Uint8Array ? value : textBytes(value, request) }
}

/** The bytes of a body that is a text; `undefined` for a text that a parser has made of JSON, which was longer. */
function textBytes(value: unknown, request: IncomingMessage): Uint8Array | undefined {
  if (typeof value !== 'string') return undefined
  const bytes = encode(value)
  const length = request.headers['content-length']
  // Parsers may leave a byte-order mark out.
  const isWhole = length === undefined || [0, 3].includes(Number(length) - bytes.length)
  return isWhole ? bytes : undefined
}

/** The fields of responses that hosts cannot change: those of the last guard. */
const keptFields = new WeakMap<ServerResponse, readonly string[]>()

/** Makes a response keep these fields, whatever the host sets, removes or passes to `writeHead`. */
function keepFields(response: ServerResponse, kept: readonly string[]): void {
  const isWrapped = keptFields.has(response)
  keptFields.set(response, kept)
  if (isWrapped) return
  const { writeHead } = response
  response.writeHead = (status: number, ...rest: unknown[]): ServerResponse => {
    const fields = keptFields.get(response) ?? []
    const names = new Set(fields.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()))
    const isOther = (name: unknown): boolean => !names.has(String(name).toLowerCase())
    const given = rest.at(-1)
    if (Array.isArray(given)) {
      rest[rest.length - 1] = given.filter((_, index) => isOther(given[index - index % 2]))
    } else if (typeof given === 'object' && given !== null) {
      rest[rest.length - 1] = Object.fromEntries(Object.entries(given).filter(([name]) => isOther(name)))
    }
    setHeaders(response, fields)
    return writeHead.call(response, status, ...rest as [])
  }
}

/** Resolves when the host's response has been sent, or its client has gone. */
function whenEnded(response: ServerResponse): Promise<HttpResponse> {
  return new Promise((resolve) => {
    finished(response, () => resolve({ status: response.statusCode, headers: [], body: undefined }))
  })
}
