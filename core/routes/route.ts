import type { GenericSchema } from 'valibot'
import type { Staleness } from '../cache/freshness.ts'
import type { Sha256 } from '../digest.ts'
import type { JsonObject } from '../http/body.ts'
import type { Parameters, ParameterValues } from '../http/parameters.ts'
import type { Cursors } from '../http/cursor.ts'
import type { InputError, ProblemCode } from '../http/problem.ts'
import type { Limiter } from '../limits/limiter.ts'
import type { LimitName } from '../model.ts'
import type { Grant } from '../policy/decide.ts'
import type { Scope } from '../policy/scopes.ts'
import type { Documents } from '../openapi/documents.ts'
import type { Directory, MaybePromise, Offers, Reports, SignupStore } from '../ports.ts'
import type { Page } from '../wire.ts'

/** What handlers may ask. */
export interface HandlerPorts {
  readonly directory: Directory
  readonly offers: Offers
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

/** What a handler gets of the request: everything judged. */
export interface Input<P extends Parameters, B> {
  readonly query: ParameterValues<P>
  readonly body: B
  /** The body as it was sent; without members for a route that takes none. */
  readonly sent: JsonObject
  /** The key of `Idempotency-Key`, where the route takes one and there is one. */
  readonly idempotencyKey: string | undefined
  /** The decoded value of a path's `:slug`; empty for a path without one. */
  readonly slug: string
  /** Whom the limits of addresses count, see `Client`. */
  client(): string | undefined
}

/** What a handler answers: the value of `data`, and of `page` for a list that pages. */
export interface Reply {
  readonly data: unknown
  readonly page?: Page
  /** Header fields of this answer, names and values in turn. */
  readonly fields?: readonly string[]
}

/** What an endpoint is called by counters, documents and logs: never changes. */
export type RouteName =
  | 'verify-key'
  | 'widget'
  | 'recent-profiles'
  | 'profiles'
  | 'profile'
  | 'banner'
  | 'countries'
  | 'industries'
  | 'plans'
  | 'report-summary'
  | 'report-activity'
  | 'sign-up'
  | 'health'
  | 'openapi'
  | 'docs'
  | 'api-catalog'

interface Described {
  readonly name: RouteName
  /** Below the service's name; `:slug` stands for one segment. */
  readonly path: `/${string}`
  readonly summary: string
  /** What there is to say about it besides its summary: a sentence or two. */
  readonly description?: string
  /** The problems that only this handler has; all others follow from the rest of the route. */
  readonly problems?: readonly ProblemCode[]
}

/** An endpoint that is used with a key. */
export interface KeyedRoute<P extends Parameters = Parameters, B = unknown> extends Described {
  readonly access: 'key'
  readonly method: 'GET' | 'POST'
  /** Absent: any key in force may use it. */
  readonly scope?: Scope
  /** A GET names the partner in its query, a POST in its body. */
  readonly parameters: P
  readonly body?: GenericSchema<unknown, B>
  /** Looks for what a body refers to. What is not there is told with all that its schema refuses. */
  readonly refuseReferences?: (
    sent: JsonObject,
    grant: Grant,
    ports: HandlerPorts,
  ) => MaybePromise<readonly InputError[]>
  /** Whether `Idempotency-Key` makes a request safe to repeat. */
  readonly takesIdempotencyKey?: true
  /** The status of success, 200 unless it says otherwise. */
  readonly status?: 201
  /** The policies that a request meets. */
  readonly limits: readonly LimitName[]
  /**
   * What a reply depends on besides partner, query and time, for as long as which it is kept: `content`;
   * `everything` for what shows facts of the partner too; `nothing` that could be kept.
   */
  readonly dependsOn: 'content' | 'everything' | 'nothing'
  handle(input: Input<P, B>, grant: Grant, ports: HandlerPorts): MaybePromise<Reply>
}

/** An endpoint without a key and without any tenant's data. */
export interface OpenRoute extends Described {
  readonly access: 'open'
  readonly method: 'GET'
  handle(ports: HandlerPorts): MaybePromise<Reply>
}

/** What a {@linkcode DocumentRoute} answers with. */
export interface Publication {
  readonly text: string
  /** Header fields that belong to it, names and values in turn. */
  readonly fields?: readonly string[]
}

/** An endpoint without a key whose answer is itself a document, the same for everybody until the service ends. */
export interface DocumentRoute extends Described {
  readonly access: 'open'
  readonly method: 'GET'
  /** The path is complete: the service's name does not stand before it. */
  readonly atRoot?: true
  /** In lower case, without parameters. */
  readonly mediaType: string
  /** The same with its parameters. */
  readonly contentType: string
  /** Names of the header fields that its publication has. */
  readonly headers?: readonly string[]
  /** Makes the document; called once. */
  publish(ports: HandlerPorts): MaybePromise<Publication>
}

/** An endpoint. */
export type Route = KeyedRoute | OpenRoute | DocumentRoute

/** The methods that the routes of one path take, `HEAD` after `GET`. */
export function allowedMethods(routes: readonly Route[]): string[] {
  return routes.flatMap(({ method }) => method === 'GET' ? ['GET', 'HEAD'] : [method])
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

/** Lends a keyed endpoint's handler the types of its parameters and body. */
export function defineRoute<P extends Parameters, B = undefined>(route: KeyedRoute<P, B>): Route {
  return route as unknown as Route
}
