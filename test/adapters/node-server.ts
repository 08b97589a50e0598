import { Buffer } from 'node:buffer'
import type { Test } from 'tap'
import {
  type RunningServer,
  type ServableApi,
  serve,
  type ServeOptions,
} from '../../adapters/runtimes/node.ts'
import type { HttpRequest, HttpResponse } from '../../core/http/message.ts'
import { Problem, type ProblemCode, PROBLEMS } from '../../core/http/problem.ts'
import { INTERNALS, type Servable } from '../../core/internals.ts'
import { connectRaw, type RawConnection } from '../support/raw-connection.ts'

export function json(status: number, value: object, withBody = true): HttpResponse {
  const body = Buffer.from(JSON.stringify(value))
  const headers = ['Content-Type', 'application/json', 'Content-Length', String(body.length)]
  return { status, headers, body: withBody ? body : undefined }
}

export const refuse = (code: ProblemCode): HttpResponse => json(PROBLEMS[code].status, { code })

/** Responds with the body of the request in hexadecimal digits, or with the problem of reading it. */
export async function echo(request: HttpRequest): Promise<HttpResponse> {
  try {
    return json(200, { hex: Buffer.from(await request.body(100_000)).toString('hex') })
  } catch (error) {
    return refuse(error instanceof Problem ? error.code : 'internal')
  }
}

interface Served {
  readonly server: RunningServer
  /** Opens a connection that lasts until the test ends. */
  open(): Promise<RawConnection>
}

/** Serves a substitute for the service, by default one that responds to everything, until the test ends. */
export async function serveStub(
  t: Test,
  { refuse: refuseAs = refuse, connectionsRefused = () => undefined, ...own }: Partial<
    ServableApi & Servable[typeof INTERNALS]
  > = {},
  options: ServeOptions = {},
): Promise<Served> {
  const api: ServableApi & Servable = {
    handle: () => json(200, {}),
    close: () => Promise.resolve(),
    ...own,
    [INTERNALS]: { refuse: refuseAs, connectionsRefused },
  }
  const server = await serve(api, { port: 0, drainTimeoutMs: 200, ...options })
  t.teardown(() => server.close())
  return {
    server,
    async open() {
      const connection = await connectRaw(server.host, server.port)
      t.teardown(() => connection.destroy())
      return connection
    },
  }
}

/** A GET request. */
export function get(target = '/', ...fields: string[]): string {
  return `GET ${target} HTTP/1.1\r\nHost: a\r\n${fields.map((field) => `${field}\r\n`).join('')}\r\n`
}

/** The head of a POST request. */
export function post(...fields: string[]): string {
  return get('/', ...fields).replace('GET', 'POST')
}
