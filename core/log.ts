import type { Call } from './call.ts'
import type { Answer } from './http/exchange.ts'
import { Problem } from './http/problem.ts'
import { sayablePath } from './http/redact.ts'

/** One line of the log. It holds no credential, no query and no body. */
export interface LogEvent {
  /** RFC 3339, UTC. */
  readonly time: string
  readonly level: 'info' | 'warn' | 'error'
  readonly event: 'request' | 'browser_allowed'
  readonly request_id: string
  readonly method: string
  /** Without the query; `/` where no route is known or something in the shape of a key stands in it. */
  readonly path: string
  readonly status?: number
  /** The problem's code. */
  readonly code?: string
  readonly partner?: string
  readonly key_id?: string
  /** The peer of the connection. */
  readonly address?: string
  readonly duration_ms?: number
  /** The trace that a valid `traceparent` belongs to (W3C Trace Context §3.2). */
  readonly trace_id?: string
  /** What went wrong inside; never said to the client. */
  readonly error?: string
}

/** Writes the log. */
export interface Journal {
  /** Notes how a call ended. @returns The answer. */
  answered(call: Call, answer: Answer): Answer
  /** Notes that a browser's request was let through. */
  browserAllowed(call: Call): void
}

/** @param all Note every answer, not only refused credentials and answers of 500 and above. */
export function createJournal(
  write: ((event: LogEvent) => void) | undefined,
  all: boolean,
  elapsed: () => number,
): Journal {
  if (write === undefined) return { answered: (_call, answer) => answer, browserAllowed: () => undefined }

  const describe = (call: Call): Pick<LogEvent, 'time' | 'request_id' | 'method' | 'path'> => {
    const trace = traceId(call.exchange.header('traceparent'))
    const { address } = call.exchange
    return {
      time: new Date().toISOString(),
      request_id: call.requestId,
      method: call.exchange.method,
      path: sayablePath(call.path),
      ...(address === undefined ? {} : { address }),
      ...(trace === undefined ? {} : { trace_id: trace }),
    }
  }

  return {
    answered(call, answer) {
      const { status } = answer
      if (!all && status !== 401 && status < 500) return answer
      const { failure, principal } = call
      const inside = failure instanceof Problem ? failure.cause : failure
      write({
        ...describe(call),
        level: status >= 500 ? 'error' : status === 401 ? 'warn' : 'info',
        event: 'request',
        status,
        duration_ms: Math.round((elapsed() - call.startedAt) * 1000) / 1000,
        ...(failure instanceof Problem
          ? { code: failure.code }
          : failure === undefined
          ? {}
          : { code: 'internal' }),
        ...(principal === undefined ? {} : { partner: principal.partner.slug, key_id: principal.key.id }),
        ...(inside === undefined ? {} : { error: inside instanceof Error ? inside.message : String(inside) }),
      })
      return answer
    },
    browserAllowed(call) {
      write({ ...describe(call), level: 'warn', event: 'browser_allowed' })
    },
  }
}

/** The trace id of a valid `traceparent` of version 00 or later (W3C Trace Context §3.2.2). */
export function traceId(traceparent: string | undefined): string | undefined {
  if (traceparent === undefined) return undefined
  const [, version, trace, parent, rest] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/.exec(traceparent) ?? []
  if (trace === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  return /^0+$/.test(trace) || /^0+$/.test(parent ?? '') ? undefined : trace
}
