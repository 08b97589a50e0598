import {
  type RunningServer,
  type ServableApi,
  serve,
  type ServeOptions,
} from '../../adapters/runtimes/node.ts'
import type { HttpRequest, HttpResponse } from '../../core/http/message.ts'
import { Problem, type ProblemCode, PROBLEMS } from '../../core/http/problem.ts'
import type { MaybePromise } from '../../core/lib/promise.ts'
import { connectRaw, type RawConnection } from '../support/raw-connection.ts'

/** The key that the stub knows. */
export const key = 'spk_test_aaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'

/** An answer in JSON, as core makes them. */
export function json(status: number, value: object, withBody = true): HttpResponse {
  const body = Buffer.from(JSON.stringify({ ...value, request_id: 'req_1' }))
  const type = status < 400 ? 'application/json' : 'application/problem+json'
  return {
    status,
    headers: ['Content-Type', type, 'Content-Length', String(body.length), 'X-Request-Id', 'req_1'],
    body: withBody ? body : undefined,
  }
}

export const refuse = (code: ProblemCode): HttpResponse => json(PROBLEMS[code].status, { code })

/** Just enough of the service for an adapter to be tried on. */
function handle(exchange: HttpRequest): MaybePromise<HttpResponse> {
  const [path, query] = exchange.target.split('?')
  if (path === '/service/health') {
    return query === undefined ? json(200, {}, exchange.method !== 'HEAD') : refuse('invalid_parameter')
  }
  if (path !== '/service/developer/verify-key') return refuse('route_not_found')
  const credentials = [exchange.header('authorization'), exchange.header('x-service-partner-key')]
  if (credentials[0] !== `Bearer ${key}` || credentials[1] !== undefined) {
    return refuse('ambiguous_credentials')
  }
  return readBody(exchange)
}

async function readBody(exchange: HttpRequest): Promise<HttpResponse> {
  try {
    const body = await exchange.body(32_768)
    return json(200, JSON.parse(Buffer.from(body).toString()))
  } catch (error) {
    return refuse(error instanceof Problem ? error.code : 'malformed_request')
  }
}

export const stub: ServableApi = {
  handle,
  refuse,
  connectionsRefused: () => undefined,
  close: () => Promise.resolve(),
}

/** A server and a way to it. */
export interface Served {
  readonly server: RunningServer
  open(): Promise<RawConnection>
}

/** Serves a stub that answers in its own way. */
export async function served(own: Partial<ServableApi> = {}, options: ServeOptions = {}): Promise<Served> {
  const server = await serve({ ...stub, ...own }, { port: 0, drainTimeoutMs: 200, ...options })
  return { server, open: () => connectRaw(server.host, server.port) }
}

/** A GET request. */
export function get(path = '/service/health', ...fields: string[]): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields.map((field) => `${field}\r\n`).join('')}\r\n`
}

/** The head of a POST to the path that reads its body. */
export function post(...fields: string[]): string {
  return get('/service/developer/verify-key', ...fields).replace('GET', 'POST')
}

export const authorization: string = `Authorization: Bearer ${key}`

/** A promise and what settles it. */
export function later<T>(): PromiseWithResolvers<T> {
  return Promise.withResolvers<T>()
}
