/** Traces, with the SDK of OpenTelemetry and its exporter in memory. */
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import t from 'tap'
import { createTracing, type TracingOptions } from '../../adapters/opentelemetry.ts'
import type { LogEvent } from '../../core/log.ts'
import { StoreError } from '../../core/ports/store-error.ts'
import type { Store } from '../../core/ports/store.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { type PartnerService, serveStore } from '../support/partner-service.ts'

interface Traced extends PartnerService {
  readonly log: readonly LogEvent[]
  /** The spans that ended since the last call, in this order. */
  spans(): ReadableSpan[]
}

/** Registers an SDK, and serves a filled store. */
async function traced(
  body: (service: Traced) => Promise<void>,
  { hasContext = true, store: given, tracing, options }: {
    readonly hasContext?: boolean
    readonly store?: Store
    readonly tracing?: TracingOptions
    readonly options?: PartnerApiOptions
  } = {},
): Promise<void> {
  const exporter = new InMemorySpanExporter()
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  )
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  if (hasContext) context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  const log: LogEvent[] = []
  const service = await serveStore(given ?? await openMemoryStore(), {
    observers: [createTracing(tracing)],
    log: (event) => log.push(event),
    logLevel: 'all',
    ...options,
  })
  try {
    await body({
      ...service,
      log,
      spans() {
        const found = exporter.getFinishedSpans()
        exporter.reset()
        return found
      },
    })
  } finally {
    await service.api.close()
    for (const api of [trace, context, propagation]) api.disable()
  }
}

/** Every method of the store returns a promise that waits for a turn of the event loop. */
function slow(store: Store): Store {
  const later = (value: unknown) => new Promise((resolve) => setImmediate(() => resolve(value)))
  const entries = Object.entries(store).map(([name, member]) =>
    typeof member !== 'function' || ['sha256', 'clock', 'close', 'knownModules', 'onChange'].includes(name)
      ? [name, member]
      : [name, (...args: unknown[]) => later(0).then(() => member(...args))]
  )
  return Object.fromEntries(entries)
}

const traceId = '0af7651916cd43dd8448eb211c80319c'
const parentId = 'b7ad6b7169203331'
const withParent = (flags: string) => ({ headers: { traceparent: `00-${traceId}-${parentId}-${flags}` } })
const list = '/public/profiles?partner=demo&q=secret'
const form = { partner: 'demo', email: 'ada@example.com', name: 'Ada Lovelace' }

const isServer = ({ kind }: ReadableSpan) => kind === SpanKind.SERVER
const isRequest = ({ name }: ReadableSpan) => name === 'GET /service/public/profiles'

t.test('a request has a server span by the conventions for HTTP', (t) =>
  traced(async ({ api, request, post, spans, log, world }) => {
    const attributesOf = async (sent: () => Promise<unknown>) => {
      spans()
      await sent()
      const [span, ...more] = spans().filter(isServer)
      t.strictSame(more, [])
      const { 'partner_api.request_id': id, ...attributes } = span!.attributes
      t.equal(id, log.at(-1)!.request_id)
      t.equal(span!.spanContext().traceId, log.at(-1)!.trace_id)
      return { name: span!.name, code: span!.status.code, ...attributes }
    }
    const span = (name: string, path: string, status: number, more: object = {}) => ({
      name,
      code: SpanStatusCode.UNSET,
      'url.scheme': 'http',
      'http.request.method': name.split(' ')[0],
      'url.path': path,
      'http.response.status_code': status,
      ...more,
    })
    const routed = (name: string, path: string, status: number) =>
      span(name, path, status, { 'http.route': name.split(' ')[1], 'partner_api.partner': 'demo' })
    const send = (target: string, method = 'GET') => () => {
      const rest = { header: () => undefined, body: () => new Uint8Array(), address: undefined }
      return Promise.resolve(api.handle({ method, target, ...rest }))
    }
    const key = world.keys['demo full'].text
    const listed = routed('GET /service/public/profiles', '/service/public/profiles', 200)
    const one = '/service/public/profiles/nobody'
    const signups = '/service/partner/signups'
    const other = { 'http.request.method': '_OTHER' }
    const cases: readonly (readonly [sent: () => Promise<unknown>, expected: object])[] = [
      [() => request(list), listed],
      // From the response cache.
      [() => request(list), listed],
      [
        () => request('/public/profiles/nobody?partner=demo'),
        routed('GET /service/public/profiles/{slug}', one, 404),
      ],
      [() => post('/partner/signups', form), routed(`POST ${signups}`, signups, 201)],
      [send('/service/nowhere?q=secret'), span('GET', '/service/nowhere', 404)],
      [send(`/service/${key}`), span('GET', '/', 404)],
      [send('/service/%zz'), span('GET', '/', 400)],
      [send('/service/nowhere', key), span('HTTP', '/service/nowhere', 404, other)],
      [send('/service/public/profiles', 'DELETE'), span('DELETE', '/service/public/profiles', 405)],
    ]
    for (const [sent, expected] of cases) t.strictSame(await attributesOf(sent), expected)
  }, { tracing: { scheme: 'http' } }))

t.test('a span continues the trace of the client, if its headers are valid', (t) =>
  traced(async ({ request, spans, log }) => {
    await request(list, { headers: { ...withParent('01').headers, tracestate: 'vendor=1' } })
    const [span] = spans().filter(isServer)
    t.match(span, { parentSpanContext: { traceId, spanId: parentId, isRemote: true } })
    t.equal(span!.spanContext().traceState?.serialize(), 'vendor=1')
    t.strictSame([span!.spanContext().traceId, log.at(-1)!.trace_id], [traceId, traceId])

    await request(list, withParent('00'))
    t.strictSame(spans(), [], 'the client did not sample the trace')
    t.equal(log.at(-1)!.trace_id, traceId)

    const zeros = `00-${'0'.repeat(32)}-${parentId}-01`
    for (const traceparent of ['', 'nonsense', zeros, `${withParent('01').headers.traceparent}, 00-1-1-01`]) {
      await request(list, { headers: { traceparent } })
      const [root] = spans().filter(isServer)
      t.equal(root!.parentSpanContext, undefined, traceparent)
      t.not(root!.spanContext().traceId, traceId)
      t.equal(root!.spanContext().traceId, log.at(-1)!.trace_id)
    }
  }))

for (
  const [kind, store] of [['synchronous', await openMemoryStore()], [
    'asynchronous',
    slow(await openMemoryStore()),
  ]] as const
) {
  t.test(`calls of ${kind} stores are children of their request`, (t) =>
    traced(async ({ request, post, spans }) => {
      const targets = Array.from(
        { length: 8 },
        (_, index) => `/public/profiles?partner=demo&limit=${index + 1}`,
      )
      await Promise.all([...targets.map((target) => request(target)), post('/partner/signups', form)])
      const found = spans()
      const servers = found.filter(isServer)
      t.equal(servers.length, 9)
      const children = found.filter((span) => !isServer(span))
      for (const { name, kind, status, attributes } of children) {
        t.strictSame([kind, status.code], [SpanKind.CLIENT, SpanStatusCode.UNSET])
        t.strictSame(attributes, { 'db.system.name': 'postgresql', 'db.operation.name': name })
      }
      for (const server of servers) {
        const id = server.spanContext().spanId
        const own = children.filter(({ parentSpanContext }) => parentSpanContext?.spanId === id)
        t.equal(own.some(({ name }) => name === 'revision'), true)
        const { name } = server
        const [operation, ...more] = own.map(({ name }) => name).filter((name) =>
          /^(list(?!Modules)|create)/.test(name)
        )
        t.strictSame([operation, more], [name.startsWith('POST') ? 'createSignup' : 'listProfiles', []])
        for (const child of own) {
          t.equal(child.spanContext().traceId, server.spanContext().traceId)
          t.ok(found.indexOf(child) < found.indexOf(server), 'ended first')
        }
      }
      t.equal(children.every(({ parentSpanContext }) => parentSpanContext !== undefined), true)
    }, { store, tracing: { databaseSystem: 'postgresql' } }))
}

t.test('a failing store marks its span and that of the request, without the message', async (t) => {
  const secret = 'ada@example.com'
  const failures = {
    thrown: () => {
      throw new StoreError('unreachable', secret)
    },
    rejected: () => Promise.reject(new TypeError(secret)),
    late: () => new Promise<never>(() => {}),
  }
  const types = { thrown: 'unreachable', rejected: 'TypeError', late: 'Error' }
  for (const [name, listProfiles] of Object.entries(failures)) {
    const store = { ...await openMemoryStore(), listProfiles }
    await traced(async ({ request, spans, log }) => {
      t.equal((await request(list)).status, 503)
      const found = spans()
      const server = found.find(isServer)!
      t.strictSame([server.status, server.attributes['error.type']], [
        { code: SpanStatusCode.ERROR },
        'store_unavailable',
      ])
      const child = found.find((span) => span.name === 'listProfiles')!
      t.strictSame([child.kind, child.status], [SpanKind.INTERNAL, { code: SpanStatusCode.ERROR }], name)
      t.equal(child.attributes['error.type'], types[name as keyof typeof types])
      t.strictSame([server.events, child.events], [[], []])
      t.equal(log.at(-1)!.trace_id, server.spanContext().traceId)
    }, { store, tracing: { databaseSystem: 'sqlite' }, options: { storeTimeoutMs: 50 } })
  }
})

t.test('without a context manager, requests have spans, and calls of the store have none', async (t) =>
  traced(async ({ request, spans, log }) => {
    await Promise.all([request(list, withParent('01')), request(list)])
    const found = spans()
    t.strictSame(found.map(({ name }) => name), Array(2).fill('GET /service/public/profiles'))
    t.strictSame(
      found.map((span) => span.spanContext().traceId).sort(),
      log.map((event) => event.trace_id).sort(),
    )
    t.ok(found.some((span) => span.parentSpanContext?.spanId === parentId))
  }, { hasContext: false, store: slow(await openMemoryStore()) }))

t.test('inside a span of the host, a request is a part of it', (t) =>
  traced(async ({ request, spans }) => {
    const tracer = trace.getTracer('host')
    await tracer.startActiveSpan('host', async (host) => {
      await request(list, withParent('01'))
      host.end()
      const inner = spans().find(isRequest)!
      t.strictSame([inner.kind, inner.parentSpanContext?.spanId], [
        SpanKind.INTERNAL,
        host.spanContext().spanId,
      ])
      await request(list, withParent('01'))
      const late = spans().find(isRequest)!
      t.strictSame(
        [late.kind, late.parentSpanContext?.spanId],
        [SpanKind.SERVER, parentId],
        'the host span ended',
      )
    })
    const unsampled = trace.wrapSpanContext({ traceId, spanId: parentId, traceFlags: 0 })
    await context.with(trace.setSpan(context.active(), unsampled), () => request(list, withParent('01')))
    t.strictSame(spans(), [], 'the host did not sample the trace')
  }))

t.test('without an SDK, nothing changes', async (t) => {
  const log: LogEvent[] = []
  const options = {
    observers: [createTracing()],
    log: (event: LogEvent) => log.push(event),
    logLevel: 'all',
  } as const
  const { api, request } = await serveStore(await openMemoryStore(), options)
  t.equal((await request(list, withParent('01'))).status, 200)
  t.equal(log.at(-1)!.trace_id, traceId)
  t.equal((await request(list)).status, 200)
  t.equal(log.at(-1)!.trace_id, undefined)
  await api.close()
})
