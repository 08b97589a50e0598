import { type ClientAddress, clientAddressOf, parseClientAddress } from './http/client-address.ts'
import type { HttpRequest } from './http/message.ts'
import { Problem, type ProblemCode, PROBLEMS } from './http/problem.ts'
import { redactKeys, redactPath } from './http/redact.ts'
import type { Principal } from './keys/principal.ts'
import { ignoreFailure } from './lib/promise.ts'
import { rfc3339 } from './lib/time.ts'
import { createWriteBehind } from './lib/write-behind.ts'
import type { AuditEntry, AuditLog } from './ports/audit.ts'
import type { Observer } from './ports/observer.ts'
import { readRows } from './ports/store.ts'

/** One line of the log. It contains no credential, no query and no body. */
export interface LogEvent {
  /** RFC 3339, UTC. */
  readonly time: string
  /**
   * `error`: status 500 and above, an unavailable store, failed background writes. `warn`: refused credentials, browser
   * requests that were allowed, clock skew, refused connections. `info`: everything else.
   */
  readonly level: 'info' | 'warn' | 'error'
  /** What happened: `docs/log-events.md` describes each. */
  readonly event:
    | 'request'
    | 'browser_allowed'
    | 'administration'
    | 'write_failed'
    | 'handler_failed'
    | 'store_unavailable'
    | 'store_recovered'
    | 'clock_skew'
    | 'connections_refused'
    | 'directory_invalid'
    | 'webhook_failing'
    | 'webhook_recovered'
    | 'webhook_disabled'
    | 'webhook_deliveries_removed'
    | 'webhooks_unavailable'
  /** `X-Request-Id` of the response. */
  readonly request_id?: string
  /** A registered method; absent for any other. */
  readonly method?: string
  /** The path as sent, without the query; `/` if it could not be parsed or contains something that looks like a key. */
  readonly path?: string
  /** Name of the endpoint; absent if no path and method matched. */
  readonly endpoint?: string
  /** Status of the response. */
  readonly status?: number
  /** Code of the problem. */
  readonly code?: string
  /** Slug of the partner that owns the key, or that was changed. */
  readonly partner?: string
  /** Public id of the key. */
  readonly key_id?: string
  /** The client's IP address, as used for limits and allow-lists; absent if unknown or invalid. */
  readonly address?: string
  /** Milliseconds from the arrival of the headers to the response, with a fraction. */
  readonly duration_ms?: number
  /** Trace id of the request's span or, without one, of a valid `traceparent` (W3C Trace Context §3.2). */
  readonly trace_id?: string
  /** Type of the administrative change, as in the audit log. */
  readonly type?: string
  /** What the change is about beside a partner or a key: a module, a scope, a kind of content, a link or a webhook. */
  readonly subject?: string
  /** Operator who made the change. */
  readonly actor?: string
  /** When the change was made: RFC 3339, UTC. */
  readonly decided_at?: string
  /** Id of the webhook. */
  readonly webhook?: string
  /** Number of deliveries. */
  readonly deliveries?: number
  /** Milliseconds by which this machine's clock is ahead of the store's; negative if it is behind. */
  readonly skew_ms?: number
  /** The internal error, which clients never see. */
  readonly error?: string
}

/** The log of a program that passes none: prints errors, and what a directory returned wrong. */
export function logToConsole(event: LogEvent): void {
  if (event.level === 'error' || event.event === 'directory_invalid') console.error(JSON.stringify(event))
}

interface LoggedRequest {
  readonly request: HttpRequest
  readonly requestId: string
  readonly path: string
  readonly client: ClientAddress | undefined
  /** The trace id that the client sent, if it is valid. */
  traceId(): string | undefined
}

interface LoggedCompletion extends LoggedRequest {
  readonly startedAt: number
  readonly route: { readonly name: string } | undefined
  readonly principal: Principal | undefined
  readonly isCredentialRejected: boolean
  readonly error: unknown
}

/** Logs what a service does, as events. Nothing throws. */
export interface RequestLogger {
  requestCompleted(completed: LoggedCompletion, status: number): void
  /** Logs a request that was rejected before it could be parsed. */
  requestRejected(code: ProblemCode, requestId: string, address?: string, error?: unknown): void
  browserAllowed(request: LoggedRequest): void
  auditLogged(entry: AuditEntry): void
  writeFailed(error: unknown): void
  handlerFailed(endpoint: string, error: unknown): void
  storeUnavailable(error: unknown): void
  storeRecovered(): void
  clockSkewed(skewMs: number): void
  connectionsRefused(limit: number): void
  directoryInvalid(error: string): void
}

type LogFields = {
  readonly [Name in keyof Omit<LogEvent, 'time' | 'level' | 'event'>]: LogEvent[Name] | undefined
}

/**
 * A failing log never fails a request.
 *
 * @param all Log every response, not only 401, 403, rejected credentials and statuses from 500.
 * @param observer Its `traceId` replaces what the client sent.
 */
export function createRequestLogger(
  sink: (event: LogEvent) => void,
  all: boolean,
  elapsed: () => number,
  trustedProxies: number,
  observer?: Pick<Observer, 'traceId'>,
): RequestLogger {
  function write(level: LogEvent['level'], event: LogEvent['event'], fields: LogFields): void {
    const present = Object.entries(fields).filter(([, value]) => value !== undefined)
    ignoreFailure(() => sink({ time: rfc3339(Date.now()), level, event, ...Object.fromEntries(present) }))
  }

  const fieldsOf = (logged: LoggedRequest) => requestFields(logged, trustedProxies, observer)

  return {
    requestCompleted(completed, status) {
      const { isCredentialRejected } = completed
      if (!all && status !== 401 && status !== 403 && status < 500 && !isCredentialRejected) return
      const { error, principal, startedAt } = completed
      const isProblem = error instanceof Problem
      write(levelOf(status, isCredentialRejected), 'request', {
        ...fieldsOf(completed),
        endpoint: completed.route?.name,
        status,
        duration_ms: Math.round((elapsed() - startedAt) * 1000) / 1000,
        code: isProblem ? error.code : error === undefined ? undefined : 'internal',
        partner: principal?.partner.slug,
        key_id: principal?.key.id,
        error: errorText(isProblem ? error.cause : error),
      })
    },
    requestRejected(code, requestId, address, error) {
      const { status } = PROBLEMS[code]
      if (!all && status < 500) return
      write(levelOf(status, false), 'request', {
        request_id: requestId,
        path: '/',
        status,
        code,
        address: parseClientAddress(address).text,
        error: errorText(error),
      })
    },
    browserAllowed: (request) => write('warn', 'browser_allowed', fieldsOf(request)),
    auditLogged: ({ type, subject, actor, at, partner, keyId }) =>
      write('info', 'administration', {
        type,
        subject,
        actor,
        decided_at: rfc3339(at),
        partner,
        key_id: keyId,
      }),
    writeFailed: (error) => write('error', 'write_failed', { error: errorText(error) }),
    handlerFailed: (endpoint, error) =>
      write('error', 'handler_failed', { endpoint, error: errorText(error) }),
    storeUnavailable: (error) => write('error', 'store_unavailable', { error: errorText(error) }),
    storeRecovered: () => write('info', 'store_recovered', {}),
    clockSkewed: (skewMs) => write('warn', 'clock_skew', { skew_ms: skewMs }),
    connectionsRefused: (limit) =>
      write('warn', 'connections_refused', { error: `${limit} connections are open` }),
    directoryInvalid: (error) => write('warn', 'directory_invalid', { error }),
  }
}

function requestFields(
  logged: LoggedRequest,
  trustedProxies: number,
  observer: Pick<Observer, 'traceId'> | undefined,
): LogFields {
  const { request, requestId, path, client } = logged
  const fields = { request_id: requestId, method: undefined, path: redactPath(path) }
  try {
    return {
      ...fields,
      method: registeredMethod(request.method),
      address: (client ?? clientAddressOf(request, trustedProxies)).text,
      trace_id: observer?.traceId?.(request) ?? logged.traceId(),
    }
  } catch {
    // The host's request or the observer has failed.
    return fields
  }
}

/** Long enough for the request that noticed the change to be answered first. */
const pollDelayMs = 50

/** @returns Polls in the background, and reports each entry after the end of the log at the first poll. */
export function createAuditWatcher(log: AuditLog, onEntry: (entry: AuditEntry) => void): () => void {
  let lastSequence: number | undefined

  return createWriteBehind(pollDelayMs, async () => {
    try {
      const from = lastSequence ??= (await log.auditHead()).sequence
      const entries = readRows<AuditEntry>((after, limit) => log.listAudit(after?.sequence ?? from, limit))
      for await (const entry of entries) {
        onEntry(entry)
        lastSequence = entry.sequence
      }
    } catch {
      // The next poll continues where this one ended.
    }
    return true
  }).wake
}

/** A client may send anything else as a method, a key included (RFC 9110 §9.1). */
const registeredMethods: ReadonlySet<string> = new Set(
  ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'QUERY'],
)

/** The method as it may be logged; `undefined` if it is not a registered one. */
export function registeredMethod(method: string): string | undefined {
  return registeredMethods.has(method) ? method : undefined
}

function levelOf(status: number, isCredentialRejected: boolean): LogEvent['level'] {
  return status >= 500 ? 'error' : status === 401 || isCredentialRejected ? 'warn' : 'info'
}

/** `store_unavailable` carries the store's own error as its cause. */
function errorText(error: unknown): string | undefined {
  if (error === undefined) return undefined
  const inner = error instanceof Problem && error.cause !== undefined ? error.cause : error
  let text = describeError(inner)
  let cause = inner instanceof Error ? inner.cause : undefined
  for (let depth = 0; depth < maxCauses && cause instanceof Error; depth++) {
    const described = describeError(cause)
    if (!text.includes(described)) text += `; cause: ${described}`
    cause = cause.cause
  }
  return redactKeys(text)
}

/** How many causes of an error the log names: drivers wrap the error of a database once or twice. */
const maxCauses = 3

/** The name and message of an error, without the values of a query, which Drizzle appends and which may be personal. */
function describeError(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return text.replace(/\nparams: [^]*$/, '')
}
