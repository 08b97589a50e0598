/**
 * A program that puts just enough of a service on the adapter of the runtime that runs it. What is to be done comes in on
 * standard input, a word a line, and what happens goes out on standard output, a line of JSON each.
 */
import process from 'node:process'
import { createInterface } from 'node:readline'
import type { ListenOptions, ServableApi } from '../../adapters/runtimes/server.ts'
import type { HttpRequest, HttpResponse } from '../../core/http/message.ts'
import { Problem, type ProblemCode, PROBLEMS } from '../../core/http/problem.ts'

const { serve } = process.versions['bun'] === undefined
  ? await import('../../adapters/runtimes/deno.ts')
  : await import('../../adapters/runtimes/bun.ts')

function tell(event: object): void {
  process.stdout.write(`${JSON.stringify(event)}\n`)
}

function json(status: number, value: unknown, more: readonly string[] = []): HttpResponse {
  const body = JSON.stringify(value)
  const headers = ['Content-Type', 'application/json', 'Content-Length', String(body.length), ...more]
  return { status, headers, body }
}

const refuse = (code: ProblemCode): HttpResponse => json(PROBLEMS[code].status, { code })
const { promise: released, resolve: release } = Promise.withResolvers<void>()

async function handle(exchange: HttpRequest): Promise<HttpResponse> {
  tell({ asked: exchange.target, address: exchange.address })
  if (exchange.target === '/wait') await released
  if (exchange.target === '/large') return json(200, 'a'.repeat(64 * 1024 * 1024))
  if (exchange.target === '/header') return json(200, {}, ['Link', '</a\r\nb>'])
  if (exchange.target !== '/body') return json(200, {})
  try {
    const { length } = await exchange.body(10)
    tell({ body: length })
    return json(200, { length })
  } catch (error) {
    const code = error instanceof Problem ? error.code : 'internal'
    tell({ body: code })
    return refuse(code)
  }
}

const api: ServableApi = {
  handle: (exchange) => exchange.target === '/now' ? json(200, {}) : handle(exchange),
  refuse,
  connectionsRefused: (limit) => tell({ refusing: limit }),
  close() {
    tell({ closed: true })
    return Promise.resolve()
  },
}

const server = await serve(api, JSON.parse(process.argv[2] ?? '{}'))
tell({ url: server.url, port: server.port, host: server.host })

/** What becomes of another server. */
async function attempt(options: ListenOptions): Promise<void> {
  try {
    const { url, drain } = await serve(api, options)
    const { status } = await fetch(`${url}/now`)
    tell({ url, status })
    await drain()
  } catch (error) {
    const { name, message, cause } = error as Error & { readonly cause?: { readonly code?: string } }
    tell({ name, message, code: cause?.code })
  }
}

const words: Readonly<Record<string, () => unknown>> = {
  release,
  drain: () => server.drain().then(() => tell({ drained: server.drain() === server.drain() })),
  again: () => attempt({ port: server.port }),
  'unknown host': () => attempt({ port: 0, host: 'no-such-host.invalid' }),
  'IPv6': () => attempt({ port: 0, host: '::1' }),
  'port 65536': () => attempt({ port: 65_536 }),
  'requestTimeoutMs -1': () => attempt({ port: 0, requestTimeoutMs: -1 }),
}

createInterface({ input: process.stdin }).on('line', (word) => words[word]?.()).on(
  'close',
  () => process.exit(),
)
