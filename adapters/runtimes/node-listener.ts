/** Mounts the service in a server of the host's. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpResponse } from '../../core/http/message.ts'
import { internalsOf } from '../../core/internals.ts'
import { assertOptions } from '../../core/lib/options.ts'
import { MountedHttpRequest, toOriginForm } from './node-request.ts'
import { setHeaders, writeResponse } from './node-response.ts'
import type { ServableApi } from './server.ts'

/** The part of a `node:http` or `node:http2` request that a listener needs, without Node's types. */
export interface NodeRequest {
  /** The value as sent. */
  readonly method?: string | undefined
  /** The target as sent. */
  readonly url?: string | undefined
  /** Names and values, alternating, as sent; without them, `headers` is read. */
  readonly rawHeaders?: readonly string[] | undefined
}

/** The part of their response that a listener needs. */
export interface NodeResponse {
  /** The status to send. */
  statusCode: number
  /** Completes the response. */
  end(): unknown
}

/** What a host that mounts the service knows better than the request that Node made. */
export interface ListenerOptions<Request extends NodeRequest = NodeRequest> {
  /**
   * Returns the client's address, as your framework determines it: it counts whatever `trustedProxies`
   * says. `undefined` means unknown. By default the connection's peer, or with `trustedProxies` an
   * entry of `X-Forwarded-For`.
   */
  readonly address?: (request: Request) => string | undefined
  /**
   * Returns path and query as the client sent them or as your router rewrote them. By default `originalUrl` of
   * Express and Connect, which remove the mount path from `url`; elsewhere `url`.
   */
  readonly target?: (request: Request) => string
}

/**
 * Mounts the service in a server of your own that passes on Node's requests: Express, Fastify, Connect, `node:http`,
 * `node:http2`. Mount it before any body parser. Framing and time limits are those of your server.
 *
 * Header fields count as your middleware leaves them in `request.headers`; a field that it does not touch counts as it
 * arrived, repetitions included.
 *
 * On Deno 2.9, a `clientError` listener of your server must destroy the socket at once: Deno passes what the client
 * sends after an error to the request of another connection. `serve` prevents that.
 *
 * @returns A request listener. Its promise is fulfilled when the response has been handed to Node. It rejects only
 * for a response that had begun before the call, and with what an option throws; a response that the host begins
 * meanwhile is left to it.
 * @throws {TypeError} for an option that does not exist, and for a value of another kind.
 * @example
 * ```ts
 * app.use(['/service', '/.well-known/api-catalog'], createListener(api))
 * ```
 */
export function createListener<Request extends NodeRequest = NodeRequest>(
  api: Pick<ServableApi, 'handle'>,
  options: ListenerOptions<Request> = {},
): (request: Request, response: NodeResponse) => Promise<void> {
  if (typeof api?.handle !== 'function') {
    throw new TypeError(
      'createListener: this is no service. Pass what createPartnerApi returned; await it first.',
    )
  }
  assertOptions('createListener', options, { address: 'a function', target: 'a function' })
  const { address: addressOf, target: targetOf = defaultTarget } = options
  return async (nodeRequest, nodeResponse) => {
    const request = nodeRequest as NodeRequest as IncomingMessage
    const response = nodeResponse as ServerResponse
    if (response.headersSent) {
      throw new Error('The response has begun: call the service before writing to it.')
    }
    const target = toOriginForm(targetOf(nodeRequest), request.method)
    const client = addressOf && { address: addressOf(nodeRequest) }
    const result = await api.handle(new MountedHttpRequest(request, response, target ?? '/', client))
    try {
      sendResponse(response, result)
    } catch (error) {
      // Node rejected a header. Nothing has been sent yet.
      sendResponse(response, internalsOf(api).refuse('internal', undefined, error))
    }
  }
}

/** Sends a response, unless the client has gone or the host has begun another one. */
export function sendResponse(nodeResponse: NodeResponse, httpResponse: HttpResponse): void {
  const response = nodeResponse as ServerResponse
  if (response.destroyed || response.headersSent) return
  setHeaders(response, httpResponse.headers)
  writeResponse(response, { ...httpResponse, headers: [] }, false)
}

/** Path and query as the client sent them. */
export function defaultTarget(request: NodeRequest): string {
  // Express and Connect remove the mount path from `url`.
  const { originalUrl } = request as { readonly originalUrl?: string }
  return originalUrl ?? request.url as string
}
