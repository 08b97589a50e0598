import type { StalenessBounds, StaleWindow } from '../cache/revision-cache.ts'
import type { JsonObject } from '../http/body.ts'
import type { Cursors } from '../http/cursor.ts'
import type { StaticDocument } from '../http/message.ts'
import type { ParameterDefs, ParameterValues } from '../http/query.ts'
import type { Sha256 } from '../lib/digest.ts'
import type { MaybePromise } from '../lib/promise.ts'
import type { Limiter } from '../limits/limiter.ts'
import type { Scope } from '../policy/modules.ts'
import type { Catalog, Directory } from '../ports/directory.ts'
import type { Reports } from '../ports/reports.ts'
import type { SignupStore } from '../ports/signups.ts'

/** What the service tells about how old the facts are that it uses. */
export interface Staleness extends Required<StalenessBounds> {
  /** The outage that it goes on in, if there is one: in milliseconds since the epoch. */
  staleWindow(): StaleWindow | undefined
}

/** The documents of a service. */
export interface Documents {
  /** The OpenAPI document. */
  openapi(): Promise<StaticDocument>
  /** The reference page. */
  reference(): Promise<StaticDocument>
  /** The links to the others (RFC 9727). */
  catalog(): StaticDocument
}

/** What can be said about an endpoint without its handler. */
export interface Endpoint {
  /** What counters and the document call it: never changes. */
  readonly name: string
  /** `HEAD` comes with `GET`. */
  readonly method: 'GET' | 'POST'
  /** The complete path, `{slug}` for a parameter. */
  readonly path: string
  /** Whether it takes a key. */
  readonly access: 'key' | 'open'
  /** What a key has to hold; `undefined`: any key in force may use it, or none is needed. */
  readonly scope: Scope | undefined
  /** What it is, in a few words. */
  readonly summary: string
}

/** What a handler gets of the request: everything judged. */
export interface HandlerInput<P extends ParameterDefs, B> {
  readonly query: ParameterValues<P>
  readonly body: B
  /** The body as it was sent; without members for a route that takes none. */
  readonly rawBody: JsonObject
  /** The key of `Idempotency-Key`, where the route takes one and there is one. */
  readonly idempotencyKey: string | undefined
  /** The decoded value of a path's `:slug`; empty for a path without one. */
  readonly slug: string
  /** Whom the limits of addresses count, see `Client`. */
  client(): string | undefined
}

/** What handlers may ask. */
export interface HandlerContext {
  readonly directory: Directory
  readonly catalog: Catalog
  readonly signups: Pick<SignupStore, 'createSignup'>
  readonly reports: Pick<Reports, 'summarise' | 'listActivity'>
  readonly sha256: Sha256
  readonly cursors: Cursors
  readonly limiter: Limiter
  /** Milliseconds on a clock that is never set back: the limiter's. */
  elapsed(): number
  /** What the service says about itself. */
  readonly documents: Documents
  /** Every endpoint of the service, paths complete. */
  readonly endpoints: readonly Endpoint[]
  readonly staleness: Staleness
  /** Milliseconds by which this machine's clock is ahead of the store's, where that is out of bounds. */
  clockSkewMs(): number | undefined
  /** @throws when the store does not answer. */
  checkStore(): MaybePromise<unknown>
}
