import type { StalenessBounds, StaleWindow } from '../cache/revision-cache.ts'
import type { JsonObject } from '../http/body.ts'
import type { Cursors } from '../http/cursor.ts'
import type { StaticDocument } from '../http/message.ts'
import type { InputError } from '../http/problem.ts'
import type { ParameterDefs, ParameterValues } from '../http/query.ts'
import type { Sha256 } from '../lib/digest.ts'
import type { MaybePromise } from '../lib/promise.ts'
import type { Limiter } from '../limits/limiter.ts'
import type { Scope } from '../model.ts'
import type { Catalog, Directory } from '../ports/directory.ts'
import type { Reports } from '../ports/reports.ts'
import type { SignupStore } from '../ports/signups.ts'

/** How old cached facts may be, and currently are. */
export interface Staleness extends Required<StalenessBounds> {
  /** The current outage of the store, in milliseconds since the epoch, while cached keys keep working. */
  staleWindow(): StaleWindow | undefined
}

export interface Documents {
  openapi(): Promise<StaticDocument>
  reference(): Promise<StaticDocument>
  /** Links to the other documents (RFC 9727). */
  catalog(): Promise<StaticDocument>
}

/** An endpoint without its handler. */
export interface Endpoint {
  /** Name in usage counts and the OpenAPI document; never changes. */
  readonly name: string
  /** `GET` includes `HEAD`. */
  readonly method: 'GET' | 'POST'
  /** The complete path, `{slug}` for a parameter. */
  readonly path: string
  /** Whether it takes a key. */
  readonly access: 'key' | 'open'
  /** The scope that a key needs; `undefined` if any valid key, or none, is enough. */
  readonly scope: Scope | undefined
  /** What the endpoint returns or does, in a few words. */
  readonly summary: string
}

export interface HandlerInput<P extends ParameterDefs, B> {
  readonly query: ParameterValues<P>
  readonly body: B
  /** The body as sent; empty for a route without one. */
  readonly rawBody: JsonObject
  /** What the route's `checkReferences` found. */
  readonly danglingReferences: readonly InputError[]
  /** The value of `Idempotency-Key`, if the route supports it. */
  readonly idempotencyKey: string | undefined
  /** The decoded value of a path's `:slug`; empty for a path without one. */
  readonly slug: string
  /** The address that limits count by, see `ClientAddress.subject`. */
  client(): string | undefined
}

export interface HandlerContext {
  readonly directory: Directory
  readonly catalog: Catalog
  readonly signups: Pick<SignupStore, 'createSignup' | 'isClaimed'>
  readonly reports: Pick<Reports, 'summarise' | 'listActivity'>
  readonly sha256: Sha256
  readonly cursors: Cursors
  readonly limiter: Limiter
  /** Milliseconds on the limiter's monotonic clock. */
  elapsed(): number
  readonly documents: Documents
  /** Every endpoint, with complete paths. */
  readonly endpoints: readonly Endpoint[]
  readonly staleness: Staleness
  /** Milliseconds by which this machine's clock is ahead of the store's; `undefined` within bounds. */
  clockSkewMs(): number | undefined
  /** @returns Whether a custom directory, if there is one, is available. @throws if the store is unavailable. */
  checkStore(): MaybePromise<boolean>
}
