import { clientAddressOf, parseClientAddress } from './http/headers.ts'
import type { HttpResponse } from './http/message.ts'
import { Problem, type ProblemCode, PROBLEMS } from './http/problem.ts'
import { redactPath } from './http/redact.ts'
import { rfc3339 } from './lib/time.ts'
import type { AuditEntry } from './ports/audit.ts'
import type { RequestContext } from './request-context.ts'

/** One line of the log. It holds no credential, no query and no body. */
export interface LogEvent {
  /** RFC 3339, UTC. */
  readonly time: string
  /**
   * `error`: answers of 500 and above, a store that does not answer, and what could not be written. `warn`: refused credentials, browsers that
   * were let through, and refused connections. `info`: all else.
   */
  readonly level: 'info' | 'warn' | 'error'
  /**
   * `request`: an answer. `browser_allowed`: a browser's request was let through. `administration`: what an
   * operator decided binds here now. `write_failed`: what is written behind the answers could not be.
   * `store_silent`: the store no longer answers. `store_answering`: it does again. `clock_skew`: this machine's clock
   * differs from the store's by more than the max staleness. `connections_refused`: as many connections are open as the
   * server may have; logged once until there are fewer.
   */
  readonly event:
    | 'request'
    | 'browser_allowed'
    | 'administration'
    | 'write_failed'
    | 'store_unavailable'
    | 'store_recovered'
    | 'clock_skew'
    | 'connections_refused'
  /** What the answer had in `X-Request-Id`. */
  readonly request_id?: string
  /** A registered method; absent for any other. */
  readonly method?: string
  /** As sent, without the query; `/` where it could not be read or holds something in the shape of a key. */
  readonly path?: string
  /** Status of the answer. */
  readonly status?: number
  /** The problem's code. */
  readonly code?: string
  /** Slug of the partner whose key it was, or that was decided about. */
  readonly partner?: string
  /** Public id of the key. */
  readonly key_id?: string
  /** The client's IP address, as limits and allow-lists know it; absent where it is not known or not an address. */
  readonly address?: string
  /** Milliseconds from the arrival of the header to the answer, with a fraction. */
  readonly duration_ms?: number
  /** The trace that a valid `traceparent` belongs to (W3C Trace Context §3.2). */
  readonly trace_id?: string
  /** What was decided, by whom, and when: the audit trail's words. */
  readonly type?: string
  /** The operator. */
  readonly actor?: string
  /** RFC 3339, UTC. */
  readonly decided_at?: string
  /** Milliseconds by which this machine's clock is ahead of the store's; negative when it is behind. */
  readonly skew_ms?: number
  /** What went wrong inside; never said to the client. */
  readonly error?: string
}

/** Writes the log. Whatever becomes of a line, the service goes on. */
export interface RequestLogger {
  /** Notes how a call ended. @returns The answer. */
  requestCompleted(call: RequestContext, answer: HttpResponse): HttpResponse
  /** Notes the refusal of a request that never became a call. */
  requestRejected(code: ProblemCode, requestId: string, address: string | undefined): void
  /** Notes that a browser's request was let through. */
  browserAllowed(call: RequestContext): void
  /** Notes what operators decided. */
  auditLogged(entry: AuditEntry): void
  /** Notes that something could not be written behind the answers. */
  writeFailed(error: unknown): void
  /** Notes that the store no longer answers. */
  storeUnavailable(error: unknown): void
  /** Notes that it answers again. */
  storeRecovered(): void
  /** Notes that this machine's clock is so many milliseconds ahead of the store's. */
  clockSkewed(skewMs: number): void
  /** Notes that the server refuses connections beyond `limit`. */
  connectionsRefused(limit: number): void
}

/** A journal that nobody reads. */
export const noopLogger: RequestLogger = {
  requestCompleted: (_call, answer) => answer,
  requestRejected: () => undefined,
  browserAllowed: () => undefined,
  auditLogged: () => undefined,
  writeFailed: () => undefined,
  storeUnavailable: () => undefined,
  storeRecovered: () => undefined,
  clockSkewed: () => undefined,
  connectionsRefused: () => undefined,
}

/**
 * @param sink Gets the lines.
 * @param all Note every answer, not only 401, 403, refused credentials and answers of 500 and above.
 * @param trustedProxies How many proxies stand in front.
 */
export function createRequestLogger(
  sink: (event: LogEvent) => void,
  all: boolean,
  elapsed: () => number,
  trustedProxies: number,
): RequestLogger {
  function write(event: Omit<LogEvent, 'time'>): void {
    try {
      sink({ time: rfc3339(Date.now()), ...event })
    } catch {
      // A log that fails is no reason to stop answering.
    }
  }

  function requestFields(
    call: RequestContext,
  ): Pick<LogEvent, 'request_id' | 'method' | 'path' | 'address' | 'trace_id'> {
    const { request: exchange, requestId, path } = call
    return {
      request_id: requestId,
      ...optionalField('method', registeredMethods.has(exchange.method) ? exchange.method : undefined),
      path: redactPath(path),
      ...optionalField('address', (call.client ?? clientAddressOf(exchange, trustedProxies)).text),
      ...optionalField('trace_id', traceId(exchange.header('traceparent'))),
    }
  }

  return {
    requestCompleted(call, answer) {
      const { status } = answer
      if (!all && status !== 401 && status !== 403 && status < 500 && !call.credentialRefused) return answer
      const { error: failure, principal } = call
      const code = failure instanceof Problem ? failure.code : failure === undefined ? undefined : 'internal'
      write({
        level: levelOf(status, call.credentialRefused),
        event: 'request',
        ...requestFields(call),
        status,
        duration_ms: Math.round((elapsed() - call.startedAt) * 1000) / 1000,
        ...optionalField('code', code),
        ...(principal === undefined ? {} : { partner: principal.partner.slug, key_id: principal.key.id }),
        ...optionalField('error', errorText(failure instanceof Problem ? failure.cause : failure)),
      })
      return answer
    },
    requestRejected(code, requestId, address) {
      const { status } = PROBLEMS[code]
      if (!all && status < 500) return
      const level = levelOf(status, false)
      write({
        level,
        event: 'request',
        request_id: requestId,
        path: '/',
        status,
        code,
        ...optionalField('address', parseClientAddress(address).text),
      })
    },
    browserAllowed(call) {
      write({ level: 'warn', event: 'browser_allowed', ...requestFields(call) })
    },
    auditLogged({ type, actor, at, partner, keyId }) {
      const about = { ...optionalField('partner', partner), ...optionalField('key_id', keyId) }
      write({ level: 'info', event: 'administration', type, actor, decided_at: rfc3339(at), ...about })
    },
    writeFailed(error) {
      write({ level: 'error', event: 'write_failed', ...optionalField('error', errorText(error)) })
    },
    storeUnavailable(error) {
      write({ level: 'error', event: 'store_unavailable', ...optionalField('error', errorText(error)) })
    },
    storeRecovered() {
      write({ level: 'info', event: 'store_recovered' })
    },
    clockSkewed(skewMs) {
      write({ level: 'warn', event: 'clock_skew', skew_ms: skewMs })
    },
    connectionsRefused(limit) {
      write({ level: 'warn', event: 'connections_refused', error: `${limit} connections are open` })
    },
  }
}

/** Any other token may be what a client likes, a key included (RFC 9110 §9.1). */
const registeredMethods: ReadonlySet<string> = new Set(
  ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'QUERY'],
)

function levelOf(status: number, credentialRefused: boolean): LogEvent['level'] {
  return status >= 500 ? 'error' : status === 401 || credentialRefused ? 'warn' : 'info'
}

function optionalField<K extends keyof LogEvent>(
  name: K,
  value: LogEvent[K] | undefined,
): Pick<LogEvent, K> | undefined {
  return value === undefined ? undefined : { [name]: value } as Pick<LogEvent, K>
}

/** A problem of the store has the reason as its cause. */
function errorText(error: unknown): string | undefined {
  if (error === undefined) return undefined
  const inner = error instanceof Problem && error.cause !== undefined ? error.cause : error
  return inner instanceof Error ? `${inner.name}: ${inner.message}` : String(inner)
}

/** The trace id of a valid `traceparent` of version 00 or later (W3C Trace Context §3.2.2). */
function traceId(traceparent: string | undefined): string | undefined {
  if (traceparent === undefined) return undefined
  const [, version, trace, parent, rest] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/.exec(traceparent) ?? []
  if (trace === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  return /^0+$/.test(trace) || /^0+$/.test(parent ?? '') ? undefined : trace
}
