import type { BodyDef, JsonObject } from '../http/body.ts'
import type { HandlerResult, StaticDocument } from '../http/message.ts'
import type { InputError, ProblemCode } from '../http/problem.ts'
import type { ParameterDefs, ParameterValues } from '../http/query.ts'
import type { MaybePromise } from '../lib/promise.ts'
import type { EndpointName, LimitName, Scope } from '../model.ts'
import type { Grant } from '../policy/decide.ts'
import type { HandlerContext, HandlerInput } from './context.ts'

interface RouteDescription {
  readonly name: EndpointName
  /** Below the service's name; `:slug` stands for one segment. */
  readonly path: `/${string}`
  /** The path is not prefixed by the name of the service. */
  readonly atRoot?: true
  /** Of a success: lower case, without parameters. Default `application/json`. */
  readonly mediaType?: string
  readonly summary: string
  /** The problems specific to this handler; all others follow from the rest of the route. */
  readonly problems?: readonly ProblemCode[]
}

/** An endpoint that takes a key. */
export interface KeyedRoute<P extends ParameterDefs = ParameterDefs, B = unknown> extends RouteDescription {
  readonly access: 'key'
  readonly method: 'GET' | 'POST'
  /** Absent: any valid key may use it. */
  readonly scope?: Scope
  readonly parameters: P
  /** Checks parameters that depend on each other; the errors are reported with those of each. */
  readonly checkParameters?: (values: ParameterValues<P>, now: number) => readonly InputError[]
  readonly body?: BodyDef<B>
  /** Checks what a body refers to. The handler of a body that is valid otherwise decides about the errors. */
  readonly checkReferences?: (
    rawBody: JsonObject,
    grant: Grant,
    ports: HandlerContext,
  ) => MaybePromise<readonly InputError[]>
  /** Whether `Idempotency-Key` makes a request safe to retry. */
  readonly takesIdempotencyKey?: true
  /** Status of a success, default 200. */
  readonly status?: 201
  /** The rate limit policies that apply. */
  readonly limits: readonly LimitName[]
  /** The revision that a response depends on besides partner, query and time; `none` for responses not cached. */
  readonly cacheBy: 'content' | 'content+partner' | 'none'
  handle(input: HandlerInput<P, B>, grant: Grant, ports: HandlerContext): MaybePromise<HandlerResult>
}

/** An endpoint without a key and without any partner's data. */
export interface OpenRoute extends RouteDescription {
  readonly access: 'open'
  readonly method: 'GET'
  handle(ports: HandlerContext): MaybePromise<HandlerResult>
}

/** A public document, the same for the lifetime of the service. */
export interface DocumentRoute extends RouteDescription {
  readonly access: 'open'
  readonly method: 'GET'
  readonly mediaType: string
  /** The media type with its parameters. */
  readonly contentType: string
  /** Names of the headers of the document. */
  readonly headers?: readonly string[]
  createDocument(ports: HandlerContext): MaybePromise<StaticDocument>
}

export type Route = KeyedRoute | OpenRoute | DocumentRoute

/** The complete path of a route, `:slug` for a parameter. */
export function completePath(route: Route, serviceName: string): string {
  return route.atRoot ? route.path : `/${serviceName}${route.path}`
}

/** The same with `{slug}`. */
export function endpointPath(route: Route, serviceName: string): string {
  return completePath(route, serviceName).replace(/:(\w+)/g, '{$1}')
}

/** The methods of the routes of one path, including HEAD. */
export function allowedMethods(routes: readonly Route[]): string[] {
  return routes.flatMap(({ method }) => method === 'GET' ? ['GET', 'HEAD'] : [method])
}

/** Declares a GET that takes a key; its handler gets the types of its parameters. */
export function defineGet<P extends ParameterDefs>(
  route: Omit<KeyedRoute<P, undefined>, 'access' | 'method' | 'limits'>,
): Route {
  return { access: 'key', method: 'GET', limits: ['key'], ...route } as unknown as Route
}

/** Declares a POST, which takes a key; its handler gets the type of its body. */
export function definePost<B>(
  route: Omit<KeyedRoute<Record<string, never>, B>, 'access' | 'method' | 'parameters' | 'cacheBy'>,
): Route {
  return { access: 'key', method: 'POST', parameters: {}, cacheBy: 'none', ...route } as unknown as Route
}
