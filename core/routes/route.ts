import type { GenericSchema } from 'valibot'
import type { JsonObject } from '../http/body.ts'
import type { HandlerResult, StaticDocument } from '../http/message.ts'
import type { InputError, ProblemCode } from '../http/problem.ts'
import type { ParameterDefs } from '../http/query.ts'
import type { MaybePromise } from '../lib/promise.ts'
import type { EndpointName, LimitName } from '../model.ts'
import type { Grant } from '../policy/decide.ts'
import type { Scope } from '../policy/modules.ts'
import type { HandlerContext, HandlerInput } from './context.ts'

interface RouteDescription {
  readonly name: EndpointName
  /** Below the service's name; `:slug` stands for one segment. */
  readonly path: `/${string}`
  readonly summary: string
  /** A sentence or two. */
  readonly description: string
  /** The problems specific to this handler; all others follow from the rest of the route. */
  readonly problems?: readonly ProblemCode[]
}

/** An endpoint that is used with a key. */
export interface KeyedRoute<P extends ParameterDefs = ParameterDefs, B = unknown> extends RouteDescription {
  readonly access: 'key'
  readonly method: 'GET' | 'POST'
  /** Absent: any key in force may use it. */
  readonly scope?: Scope
  /** A GET names the partner in its query, a POST in its body. */
  readonly parameters: P
  readonly body?: GenericSchema<unknown, B>
  /** Looks for what a body refers to. What is not there is told with all that its schema refuses. */
  readonly checkReferences?: (
    rawBody: JsonObject,
    grant: Grant,
    ports: HandlerContext,
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
  readonly cacheBy: 'content' | 'content+partner' | 'none'
  handle(input: HandlerInput<P, B>, grant: Grant, ports: HandlerContext): MaybePromise<HandlerResult>
}

/** An endpoint without a key and without any tenant's data. */
export interface OpenRoute extends RouteDescription {
  readonly access: 'open'
  readonly method: 'GET'
  handle(ports: HandlerContext): MaybePromise<HandlerResult>
}

/** An endpoint without a key whose answer is itself a document, the same for everybody until the service ends. */
export interface DocumentRoute extends RouteDescription {
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
  createDocument(ports: HandlerContext): MaybePromise<StaticDocument>
}

/** An endpoint. */
export type Route = KeyedRoute | OpenRoute | DocumentRoute

/** The methods that the routes of one path take, `HEAD` after `GET`. */
export function allowedMethods(routes: readonly Route[]): string[] {
  return routes.flatMap(({ method }) => method === 'GET' ? ['GET', 'HEAD'] : [method])
}

/** Lends a keyed endpoint's handler the types of its parameters and body. */
export function defineRoute<P extends ParameterDefs, B = undefined>(route: KeyedRoute<P, B>): Route {
  return route as unknown as Route
}
