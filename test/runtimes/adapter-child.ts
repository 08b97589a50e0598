/**
 * A program that serves a small test API with the adapter of its runtime. It reads commands from standard input and writes
 * events to standard output, one line of JSON each. It runs one server at a time.
 */
import process from 'node:process'
import { createInterface } from 'node:readline'
import type { ServeOptions } from '../../adapters/runtimes/node.ts'
import type { ListenOptions, RunningServer, ServableApi } from '../../adapters/runtimes/server.ts'
import { createBunResponseConverter } from '../../adapters/runtimes/bun-response.ts'
import { createResponseConverter } from '../../core/http/fetch.ts'
import { clientAddressOf } from '../../core/http/client-address.ts'
import type { HttpRequest, HttpResponse } from '../../core/http/message.ts'
import { Problem, type ProblemCode, PROBLEMS } from '../../core/http/problem.ts'
import { INTERNALS, type Servable } from '../../core/internals.ts'

/** A response. `cached` is a body of bytes that all responses with the same text share. */
export type PlainResponse = Pick<HttpResponse, 'status' | 'headers'> & {
  readonly body?: string
  readonly cached?: string
}

/** Starts the server, attempts to start a second one, converts responses to `Response`, measures, or acts on the server. */
export type Order =
  | { readonly serve: ServeOptions }
  | { readonly attempt: ListenOptions }
  | { readonly convert: readonly PlainResponse[] }
  | 'release'
  | 'drain'
  | 'drain after release'
  | 'measure addresses'

const runtime = 'bun' in process.versions ? 'bun' : 'node'
const { serve }: { serve(api: ServableApi, options: ServeOptions): Promise<RunningServer> } = await import(
  `../../adapters/runtimes/${runtime}.ts`
)

/** Bun has no such limits, and its `serve` has no such options. */
function supportedOptions(options: ServeOptions): ServeOptions {
  if (runtime === 'node') return options
  const { headersTimeoutMs: _head, writeTimeoutMs: _write, maxConnections: _most, ...supported } = options
  return supported
}

function report(event: object): void {
  process.stdout.write(`${JSON.stringify(event)}\n`)
}

function json(status: number, value: unknown, more: readonly string[] = []): HttpResponse {
  const body = JSON.stringify(value)
  const headers = ['Content-Type', 'application/json', 'Content-Length', String(body.length), ...more]
  return { status, headers, body }
}

const large = (): HttpResponse => json(200, 'a'.repeat(24 * 1024 * 1024))
const refuse = (code: ProblemCode): HttpResponse => json(PROBLEMS[code].status, { code })
let released = Promise.withResolvers<void>()

async function handle(request: HttpRequest): Promise<HttpResponse> {
  const { target, address } = request
  report({ asked: target, address })
  if (target === '/wait') await released.promise
  if (target === '/large') return large()
  if (target === '/header') return json(200, {}, ['Link', '</a\r\nb>'])
  if (target !== '/body') return json(200, {})
  try {
    const { length } = await request.body(32_768)
    report({ body: length })
    return json(200, { length })
  } catch (error) {
    const code = error instanceof Problem ? error.code : 'internal'
    report({ body: code })
    return refuse(code)
  }
}

const api: ServableApi & Servable = {
  handle(request) {
    if (request.target === '/now') return json(200, {})
    return request.target === '/large-now' ? large() : handle(request)
  },
  [INTERNALS]: { refuse, connectionsRefused: (limit) => report({ refusing: limit }) },
  close() {
    report({ closed: true })
    return Promise.resolve()
  },
}

async function attempt(options: ListenOptions): Promise<void> {
  try {
    const { url, close } = await serve(api, options)
    const { status } = await fetch(`${url}/now`)
    report({ url, status })
    await close()
  } catch (error) {
    const { name, message, cause } = error as Error & { readonly cause?: { readonly code?: string } }
    report({ name, message, code: cause?.code })
  }
}

/**
 * Converts the responses twice, and reads each time after all of them have been made, since some are made from others. In
 * between, a host changes all that it got.
 */
async function convert(responses: readonly PlainResponse[]): Promise<void> {
  const bodies = new Map<string, Uint8Array>()
  const createConverter = runtime === 'bun' ? createBunResponseConverter : createResponseConverter
  const respond = createConverter(() => refuse('internal'))
  const makeAll = () =>
    responses.map(({ status, headers, body, cached }) => {
      if (cached === undefined) return respond({ status, headers, body })
      const bytes = bodies.get(cached) ?? new TextEncoder().encode(cached)
      bodies.set(cached, bytes)
      return respond({ status, headers, body: bytes })
    })
  async function readAndChange(response: Response) {
    const bytes = new Uint8Array(await response.arrayBuffer())
    const read = [response.status, [...response.headers], new TextDecoder().decode(bytes)]
    bytes.fill(0)
    response.headers.append('ETag', 'x')
    return read
  }
  const first = await Promise.all(makeAll().map(readAndChange))
  report({ converted: [...first, ...await Promise.all(makeAll().map(readAndChange))] })
}

/** On Bun, reports the megabytes that the addresses of 1,500 clients take, each from a header field of 30 KB. */
function measureAddresses(): void {
  const { gc } = (globalThis as unknown as { Bun: { gc(isSync: boolean): void } }).Bun
  gc(true)
  const before = process.memoryUsage().heapUsed
  for (let index = 0; index < 1_500; index++) {
    const field = `${index}${'x'.repeat(30_000)}, 2001:db8:ffff:ffff:ffff:ffff:ffff:${index.toString(16)}`
    clientAddressOf({ header: () => field } as unknown as HttpRequest, 1)
  }
  gc(true)
  report({ kept: (process.memoryUsage().heapUsed - before) / 1e6 })
}

let server: RunningServer
createInterface({ input: process.stdin }).on('line', async (line) => {
  const order: Order = JSON.parse(line)
  if (order === 'release') released.resolve()
  else if (order === 'drain') {
    await server.close().then(() => report({ drained: server.close() === server.close() }))
  } else if (order === 'drain after release') {
    const drained = server.close(released.promise)
    report({ draining: true })
    await drained
    report({ drained: true })
  } else if (order === 'measure addresses') measureAddresses()
  else if ('attempt' in order) await attempt(order.attempt)
  else if ('convert' in order) await convert(order.convert)
  else {
    released = Promise.withResolvers()
    server = await serve(api, supportedOptions(order.serve))
    report({ url: server.url, port: server.port })
  }
}).on('close', () => process.exit())
