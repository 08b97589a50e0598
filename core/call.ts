import type { Client } from './http/client-address.ts'
import type { Exchange } from './http/exchange.ts'
import { sayablePath } from './http/redact.ts'
import type { Principal } from './keys/principal.ts'
import type { Revision } from './ports.ts'

/** A request on its way through the pipeline: what is known of it so far. */
export interface Call {
  readonly exchange: Exchange
  readonly requestId: string
  /** Milliseconds on the clock that is never set back. */
  readonly startedAt: number
  /** As sent, without the query. */
  readonly path: string
  /** Whether a route has been found: from then on problems name the path. */
  known: boolean
  /** The path's `:slug`, still percent-encoded. */
  slug: string
  client: Client | undefined
  revision: Revision
  principal: Principal | undefined
  /** The RateLimit fields, once limits have been met. */
  limitFields: readonly string[]
  /** What was thrown, when something was. */
  failure: unknown
}

const nothingYet: Revision = { facts: '', content: '' }

/** Begins a call. */
export function beginCall(exchange: Exchange, requestId: string, startedAt: number): Call {
  const { target } = exchange
  const end = target.indexOf('?')
  return {
    exchange,
    requestId,
    startedAt,
    path: end < 0 ? target : target.slice(0, end),
    known: false,
    slug: '',
    client: undefined,
    revision: nothingYet,
    principal: undefined,
    limitFields: [],
    failure: undefined,
  }
}

/** The path as an answer or a log may say it: the root when no route is known. */
export function sayablePathOf({ known, path }: Call): string {
  return known ? sayablePath(path) : '/'
}
