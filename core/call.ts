import type { KeptReply } from './cache/replies.ts'
import type { Client } from './http/client-address.ts'
import type { Exchange } from './http/exchange.ts'
import { type Query, readQuery } from './http/query.ts'
import type { Asked } from './http/representation.ts'
import type { Principal } from './keys/principal.ts'
import type { Revision } from './ports.ts'
import type { Route } from './routes/route.ts'

/** A request on its way through the pipeline: what is known of it so far. */
export interface Call {
  readonly exchange: Exchange
  readonly requestId: string
  /** Milliseconds on the clock that is never set back. */
  readonly startedAt: number
  /** The instant at which the request is judged, milliseconds since the epoch. */
  now: number
  /** As sent, without the query; `/` until it is known to be a path. */
  path: string
  route: Route | undefined
  /** The path's `:slug`, still percent-encoded. */
  slug: string
  client: Client | undefined
  /** What was kept of an earlier answer to the same target, whether it still holds good or not. */
  kept: KeptReply | undefined
  revision: Revision
  principal: Principal | undefined
  /** Whether a credential was refused. */
  credentialRefused: boolean
  /** Whether the credential is being looked up, and counted as a failure until that is decided. */
  isUndecided: boolean
  /** The count of the failure, which has to be known before it is answered. Never rejects. */
  counted: Promise<number | undefined> | undefined
  /** The RateLimit fields, once limits have been met. */
  limitFields: readonly string[]
  /** What was thrown, when something was. */
  failure: unknown
}

const nothingYet: Revision = { facts: '', content: '' }

/** Begins a call. */
export function beginCall(exchange: Exchange, requestId: string, startedAt: number, now: number): Call {
  return {
    exchange,
    requestId,
    startedAt,
    now,
    path: '/',
    route: undefined,
    slug: '',
    client: undefined,
    kept: undefined,
    revision: nothingYet,
    principal: undefined,
    credentialRefused: false,
    isUndecided: false,
    counted: undefined,
    limitFields: [],
    failure: undefined,
  }
}

/** What of a call its answer depends on. */
export function askedOf({ exchange, requestId }: Call): Asked {
  return { requestId, method: exchange.method, ifNoneMatch: exchange.header('if-none-match') }
}

/** The query of a call whose path is known. */
export function queryOf({ exchange, path }: Call): Query {
  return readQuery(exchange.target.slice(path.length + 1))
}
