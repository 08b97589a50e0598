/**
 * Traces of OpenTelemetry: a span for each request, by the conventions for HTTP, with a span
 * for each call of the store.
 *
 * @module
 */
import {
  type Context,
  context,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import type { HttpRequest } from '../core/http/message.ts'
import { isPercentEncoded } from '../core/http/query.ts'
import { redactPath } from '../core/http/redact.ts'
import { assertOptions } from '../core/lib/options.ts'
import type { MaybePromise } from '../core/lib/promise.ts'
import { registeredMethod } from '../core/log.ts'
import type { Observer } from '../core/ports/observer.ts'

type Api = Pick<typeof import('@opentelemetry/api'), 'trace' | 'context' | 'propagation'>

/** Settings of traces. */
export interface TracingOptions {
  /** `db.system.name` of the store, such as `postgresql` or `sqlite`; absent if unknown. */
  readonly databaseSystem?: string | undefined
  /** `url.scheme` of requests; absent if unknown. */
  readonly scheme?: 'http' | 'https' | undefined
}

/**
 * Makes spans with the SDK that is registered in this process. They contain no key, query, body or address. Calls
 * of the store have spans if the SDK has a context manager.
 */
export function createTracing(options: TracingOptions = {}): Observer {
  assertOptions('createTracing', options, { databaseSystem: 'a text', scheme: 'a text' })
  const { databaseSystem, scheme } = options
  // The functions of the API ignore an SDK that brought an older copy of it.
  const registered: Partial<Api> = Reflect.get(globalThis, Symbol.for('opentelemetry.js.api.1'))
  const sdk: Api = { trace, context, propagation, ...registered }
  const tracer = sdk.trace.getTracer('partner-api')
  const storeKind = (databaseSystem ?? 'sqlite') === 'sqlite' ? SpanKind.INTERNAL : SpanKind.CLIENT
  const spans = new WeakMap<HttpRequest, Span>()

  return {
    request(request, handle) {
      const active = sdk.context.active()
      const outer = trace.getSpan(active)
      // The host traces the request, unless the span has ended. One that is not sampled never records.
      const isNested = outer && (outer.isRecording() || (outer.spanContext().traceFlags & 1) === 0)
      const parent = isNested ? active : sdk.propagation.extract(trace.deleteSpan(active), request, headers)
      // What samplers need. Malformed methods and paths are left out: a client may send anything in their place.
      const method = registeredMethod(request.method)
      const [path = ''] = request.target.split('?', 1)
      const attributes = {
        'http.request.method': method ?? '_OTHER',
        'url.path': path.startsWith('/') && isPercentEncoded(path) ? redactPath(path) : '/',
        'url.scheme': scheme,
      }
      const kind = isNested ? SpanKind.INTERNAL : SpanKind.SERVER
      const span = tracer.startSpan(method ?? 'HTTP', { kind, attributes }, parent)
      spans.set(request, span)
      return runIn(sdk, span, parent, handle)
    },

    requestCompleted({ request, requestId, method = 'HTTP', route, status, code, partner }) {
      const span = request && spans.get(request)
      if (!span?.isRecording()) return
      if (route !== undefined) span.updateName(`${method} ${route.path}`)
      span.setAttributes({
        'http.route': route?.path,
        'http.response.status_code': status,
        'partner_api.request_id': requestId,
        'partner_api.partner': partner,
      })
      if (status >= 500) span.setStatus(failed).setAttribute('error.type', code ?? `${status}`)
    },

    storeCall(operation, call) {
      const parent = sdk.context.active()
      // Work in the background has no span, or that of a request that has ended.
      if (!trace.getSpan(parent)?.isRecording()) return call()
      const attributes = { 'db.system.name': databaseSystem, 'db.operation.name': operation }
      return runIn(sdk, tracer.startSpan(operation, { kind: storeKind, attributes }, parent), parent, call)
    },

    traceId(request) {
      const found = spans.get(request)?.spanContext()
      return found && trace.isSpanContextValid(found) ? found.traceId : undefined
    },
  }
}

/** Calls a function in a span, and ends it. */
function runIn<T>(sdk: Api, span: Span, parent: Context, call: () => MaybePromise<T>): MaybePromise<T> {
  const end = (result: T): T => {
    span.end()
    return result
  }
  const fail = (error: unknown): never => {
    // The message may contain data.
    const { cause = error } = Object(error)
    span.setStatus(failed).setAttribute('error.type', cause?.code ?? cause?.name ?? '_OTHER').end()
    throw error
  }
  try {
    const result = sdk.context.with(trace.setSpan(parent, span), call)
    return result instanceof Promise ? result.then(end, fail) : end(result)
  } catch (error) {
    return fail(error)
  }
}

const failed = { code: SpanStatusCode.ERROR }
const headers = { get: (request: HttpRequest, name: string) => request.header(name), keys: () => [] }
