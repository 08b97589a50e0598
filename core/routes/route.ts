import type { GenericSchema } from 'valibot'
import type { RevisionCache, StalenessBounds, StaleWindow } from '../cache/revision-cache.ts'
import type { JsonObject } from '../http/body.ts'
import type { Cursors } from '../http/cursor.ts'
import type { HandlerResult, ProblemPage } from '../http/message.ts'
import type { InputError, Problem, ProblemCode } from '../http/problem.ts'
import type { Query } from '../http/query.ts'
import type { LastUsedRecorder } from '../keys/last-used.ts'
import type { Sha256 } from '../lib/digest.ts'
import type { MaybePromise } from '../lib/promise.ts'
import type { ClaimStore } from '../admin/claims.ts'
import type { ServiceLimits } from '../admin/successor.ts'
import type { Limiter } from '../limits/limiter.ts'
import type { EndpointMethod, EndpointName, PolicyName, Scope, SelfService } from '../model.ts'
import type { Grant } from '../policy/decide.ts'
import type { Catalog, Directory } from '../ports/directory.ts'
import type { Reports } from '../ports/reports.ts'
import type { SignupStore } from '../ports/signups.ts'
import type { RecordedEndpoint } from '../ports/store.ts'
import type { InputSchemas, InputValues } from '../schemas/input-schemas.ts'
import { type Inputs, ownSentence, type Parameter, toMembers, toParameters } from '../schemas/check-input.ts'

interface RouteDescription {
  readonly name: EndpointName | (string & Record<never, never>)
  /** Below the service's name; `:name` stands for one segment. */
  readonly path: `/${string}`
  /**
   * The path is at the root of the origin, and below the base path too, and not prefixed by the name of the service.
   */
  readonly atRoot?: true
  /**
   * The media types of a success, in lower case and without parameters, the usual one first; default
   * `application/json`. A request selects one by `Accept`.
   */
  readonly mediaTypes?: readonly [usual: string, ...others: string[]]
  /** The path ends with a secret: it stays out of the log and of problems. */
  readonly endsWithSecret?: true
  readonly summary: string
  /** Sentences for the documents, which have those of the built-in endpoints. */
  readonly description?: string | undefined
  /** The problems specific to this handler; all others follow from the rest of the route. */
  readonly problems?: readonly ProblemCode[]
}

/** An endpoint that takes a key. */
export interface KeyedRoute extends RouteDescription {
  readonly access: 'key'
  readonly method: EndpointMethod
  /** Absent: any valid key may use it. */
  readonly scope?: Scope
  /** What it does in place of the operator: the partner must be allowed to. */
  readonly selfService?: SelfService
  /** The parameters of the query, without `partner`, which the policy checks. */
  readonly parameters: Inputs<Parameter>
  /** The members of a body. */
  readonly body?: Inputs | undefined
  /** Whether `Idempotency-Key` makes a request safe to retry. */
  readonly takesIdempotencyKey?: boolean
  /** Status of a success, default 200. */
  readonly status?: 201 | undefined
  /** The schema of `data`; that of a built-in endpoint is in `schemas/responses`. */
  readonly response?: GenericSchema | undefined
  /** The rate limit policies that apply. */
  readonly limits: readonly PolicyName[]
  /** Whether requests count toward no quota of the partner, and are refused by none. */
  readonly skipsQuotas?: true
  /** The revision that a response depends on besides partner, query and time; `none` for responses not cached. */
  readonly cacheBy: 'content' | 'content+partner' | 'none'
  /** The revision of an endpoint of the host's own, by which its responses are cached. */
  readonly revision?: ((context: HandlerContext) => MaybePromise<string>) | undefined
  /**
   * Checks input beyond its schemas. What it returns, the handler gets as `checked`.
   *
   * @param errors What the schemas found, in values that are `undefined` then.
   * @throws {Problem} with these errors and its own.
   */
  check?(
    input: ReadInput,
    errors: readonly InputError[],
    grant: Grant,
    context: HandlerContext,
  ): MaybePromise<unknown>
  handle(input: HandlerInput, grant: Grant, context: HandlerContext): MaybePromise<HandlerResult>
}

/** A GET that takes a key, with the schemas of its parameters. */
interface GetDefinition<P extends InputSchemas, Checked> extends
  Omit<
    KeyedRoute,
    'access' | 'method' | 'limits' | 'parameters' | 'body' | 'check' | 'handle'
  > {
  readonly parameters: P
  check?(
    input: ReadInput<P>,
    errors: readonly InputError[],
    grant: Grant,
    context: HandlerContext,
  ): MaybePromise<Checked>
  handle(
    input: HandlerInput<P, InputSchemas, Checked>,
    grant: Grant,
    context: HandlerContext,
  ): MaybePromise<HandlerResult>
}

/** A POST that takes a key, with the schemas of its body. */
interface PostDefinition<B extends InputSchemas, Checked> extends
  Omit<
    KeyedRoute,
    'access' | 'method' | 'cacheBy' | 'parameters' | 'body' | 'check' | 'handle'
  > {
  readonly body: B
  check?(
    input: ReadInput<InputSchemas, B>,
    errors: readonly InputError[],
    grant: Grant,
    context: HandlerContext,
  ): MaybePromise<Checked>
  handle(
    input: HandlerInput<InputSchemas, B, Checked>,
    grant: Grant,
    context: HandlerContext,
  ): MaybePromise<HandlerResult>
}

/** An endpoint without a key. */
export interface OpenRoute extends RouteDescription {
  readonly access: 'open'
  readonly method: 'GET' | 'POST'
  readonly status?: 201
  handle(context: HandlerContext, request: OpenRequest): MaybePromise<HandlerResult>
}

/** A request for an endpoint without a key. */
export interface OpenRequest {
  /** The parameters of the path, still percent-encoded. */
  readonly params: PathValues
  now(): number
  /** Whether `Accept` prefers a media type to another. */
  prefers(type: string, other: string): boolean
  /** @throws {Problem} `invalid_parameter` for a query. */
  requireNoParameters(): void
  /** @throws {Problem} `rate_limited` for an address with too many failed authentications. */
  requireUnblocked(): void
  /** Waits for the body, which does not count. @throws {Problem} `body_too_large`. */
  skipBody(): Promise<void>
  /** Has problems shown as pages. */
  showProblems(page: ProblemPage): void
  /** Looks up a secret of the path. Without a result, that is a failed authentication with this problem. */
  lookUp<T>(problem: ProblemCode, find: () => MaybePromise<T | undefined>): Promise<T>
}

/** A public document, the same for the lifetime of the service. */
export interface DocumentRoute extends RouteDescription {
  readonly access: 'open'
  readonly method: 'GET'
  readonly isDocument: true
  readonly mediaTypes: readonly [usual: string, ...others: string[]]
  /** The parameters of its media types, default `charset=utf-8`. */
  readonly typeParameters?: string
  /** Names of the headers of the document. */
  readonly headers?: readonly string[]
}

export type Route = KeyedRoute | OpenRoute | DocumentRoute

const jsonOnly = ['application/json'] as const

/** The media types of the successes of a route, the usual one first. */
export function mediaTypesOf(
  { mediaTypes = jsonOnly }: Route,
): readonly [usual: string, ...others: string[]] {
  return mediaTypes
}

/** Whether a success is a page for people, who opened a link. */
export function isPage(route: Route): route is OpenRoute {
  return !('isDocument' in route) && mediaTypesOf(route).includes('text/html')
}

/** The pages of one-time links. */
export interface ClaimPages {
  /** Puts a page in place of the data of a result. */
  createClaimPage(result: HandlerResult, sha256: Sha256): HandlerResult
  createProblemPage(problem: Problem, requestId: string, sha256: Sha256): ReturnType<ProblemPage>
}

/** The parameters of a path. */
export type PathValues = Readonly<Record<string, string>>

/** The values of a path without parameters. */
export const NO_PARAMS: PathValues = Object.freeze({})

/** The complete path of a route, `:name` for a parameter. */
export function completePath(route: Route, serviceName: string, basePath = ''): string {
  return route.atRoot ? route.path : `${basePath}/${serviceName}${route.path}`
}

/** The complete path of a route, `{name}` for a parameter, as in OpenAPI. */
export function endpointPath(route: Route, serviceName: string, basePath = ''): string {
  return completePath(route, serviceName, basePath).replace(/:(\w+)/g, '{$1}')
}

/** The name of a route in documents. Without `_`, `a-1` and `a1` would have the same. */
export function operationIdOf({ name }: Pick<Route, 'name'>): string {
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()).replaceAll('-', '_')
}

/** The methods of the routes of one path, including HEAD. */
export function allowedMethods(routes: readonly Route[]): string[] {
  return routes.flatMap(({ method }) => method === 'GET' ? ['GET', 'HEAD'] : [method])
}

/** Declares a GET that takes a key; its handler gets the types of its parameters. */
export function defineGet<P extends InputSchemas, Checked = undefined>(
  definition: GetDefinition<P, Checked>,
): KeyedRoute {
  return {
    ...definition,
    access: 'key',
    method: 'GET',
    limits: ['key'],
    parameters: toParameters(definition.parameters, ownSentence),
  }
}

/** Declares a POST, which takes a key; its handler gets the type of its body. */
export function definePost<B extends InputSchemas, Checked = undefined>(
  definition: PostDefinition<B, Checked>,
): KeyedRoute {
  return {
    ...definition,
    access: 'key',
    method: 'POST',
    cacheBy: 'none',
    parameters: {},
    body: toMembers(definition.body, ownSentence),
  }
}

/** How old cached facts may be, and currently are. */
export interface Staleness extends Required<StalenessBounds> {
  /** The current outage of the store, in milliseconds since the epoch, while cached keys keep working. */
  staleWindow(): StaleWindow | undefined
}

/** An endpoint without its handler. */
export interface Endpoint extends Omit<RecordedEndpoint, 'service'> {
  /** Whether it takes a key. */
  readonly access: 'key' | 'open'
  /** What the endpoint returns or does, in a few words. */
  readonly summary: string
}

/** The input of a request, read by the schemas of its route. */
export interface ReadInput<P extends InputSchemas = InputSchemas, B extends InputSchemas = InputSchemas> {
  readonly query: InputValues<P>
  /** The query as sent. */
  readonly rawQuery: Query
  readonly body: InputValues<B>
  /** The body as sent; empty for a route without one. */
  readonly rawBody: JsonObject
  /** The value of `Idempotency-Key`, if the route supports it. */
  readonly idempotencyKey: string | undefined
  /** The parameters of the path, decoded. */
  readonly params: PathValues
  /** The address that failures count by, see `ClientAddress.subject`; any, while none is counted. */
  client(): string | undefined
}

/** What a handler gets of a request that is valid. */
export interface HandlerInput<
  P extends InputSchemas = InputSchemas,
  B extends InputSchemas = InputSchemas,
  Checked = unknown,
> extends ReadInput<P, B> {
  /** What the route's `check` returned. */
  readonly checked: Checked
}

/** The parts of a service that handlers use; all requests share them. */
export interface HandlerContext {
  readonly directory: Directory
  readonly catalog: Catalog
  readonly signups: Pick<SignupStore, 'createSignup' | 'isReserved'>
  readonly reports: Pick<Reports, 'summarise' | 'listActivity' | 'listProblems'>
  readonly sha256: Sha256
  /** Loads the code of the pages of one-time links. */
  loadClaimPages(): Promise<ClaimPages>
  /** The store, for changes by partners. */
  readonly administration: ClaimStore
  /** The limits of the service, which apply to keys and partners without their own. */
  readonly limits: ServiceLimits
  readonly lastUsed: LastUsedRecorder
  readonly revisionCache: RevisionCache
  readonly cursors: Cursors
  /** Milliseconds that a handler of the host's own may take. */
  readonly handlerTimeoutMs: number
  /** Logs that it failed after that time. */
  handlerFailed(endpoint: string, error: unknown): void
  readonly limiter: Limiter
  /** Milliseconds on the limiter's monotonic clock. */
  elapsed(): number
  /** Every endpoint, with complete paths. */
  readonly endpoints: readonly Endpoint[]
  readonly staleness: Staleness
  /** Milliseconds by which this machine's clock is ahead of the store's; `undefined` within bounds. */
  clockSkewMs(): number | undefined
  /** @returns Whether a custom directory, if there is one, is available. @throws if the store is unavailable. */
  checkStore(): MaybePromise<boolean>
}
