/** Endpoints of the host's own: rows of the same table, declared with valibot schemas. */
import type { ProblemCode } from '../http/problem.ts'
import type { Query } from '../http/query.ts'
import { formatValue } from '../http/redact.ts'
import { assertKind, assertOptions, kindOf, type OptionKinds } from '../lib/options.ts'
import { andThen, type MaybePromise } from '../lib/promise.ts'
import type { EndpointScope, KeyPolicyName, Modules } from '../model.ts'
import * as input from '../schemas/input-schemas.ts'
import type { EndpointSchema, InputSchemas } from '../schemas/input-schemas.ts'
import { describeIssue } from '../schemas/issues.ts'
import { toMembers, toParameters } from '../schemas/check-input.ts'
import type { AnySchema } from '../lib/schema-structure.ts'
import { type EndpointResult, toResult } from './host-results.ts'
import { assertUsable, type EndpointGrant, runWithTimeout, toHostGrant } from './host-code.ts'
import { findSchemaMisuse, findUnsendable, isSchema, type UnsendableType } from './host-schemas.ts'
import { readPage } from './paging.ts'
import type { KeyedRoute, Route } from './route.ts'

/** valibot schemas by the names of parameters or members. */
export type EndpointSchemas = Readonly<Record<string, EndpointSchema>>

/** The values of a request, as these schemas return them. */
export type EndpointValues<S extends EndpointSchemas> = {
  readonly [Name in keyof S]: NonNullable<S[Name]['~standard']['types']>['output']
}

/** The types of what a schema takes: within `optional` and the like, of items, members and alternatives. */
export type TakenType<S> = S extends { readonly wrapped: infer Wrapped } ? TakenType<Wrapped>
  : S extends { readonly type: 'array'; readonly item: infer Item } ? TakenType<Item>
  : S extends { readonly type: 'union' | 'variant'; readonly options: readonly (infer Option)[] }
    ? Exclude<TakenType<Option>, 'never'>
  : S extends { readonly type: 'record'; readonly value: infer Value } ? Exclude<TakenType<Value>, 'never'>
  : S extends { readonly type: infer Type; readonly items: readonly (infer Item)[] }
    ? Type | Exclude<TakenType<Item>, 'never'>
  : S extends { readonly type: infer Type; readonly entries: infer Entries }
    ? Type | Exclude<{ [Name in keyof Entries]: TakenType<Entries[Name]> }[keyof Entries], 'never'>
  : S extends { readonly type: infer Type } ? Type
  : string

/** Schemas, with a text in place of those that take a `Date`, a `bigint` or the like: no query or JSON has these. */
export type SendableSchemas<S extends EndpointSchemas> = {
  readonly [Name in keyof S]: Extract<TakenType<S[Name]>, UnsendableType> extends never ? S[Name]
    : 'no request can send what this takes'
}

/** The names of the parameters of a path. */
export type PathParameters<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathParameters<`/${Rest}`>
  : Path extends `${string}:${infer Name}` ? Name
  : never

/** The value of `data` that a schema of a response describes; `unknown` without one. */
export type EndpointData<R extends EndpointSchema> = NonNullable<R['~standard']['types']>['output']

/** A list that is read in pages. Cursors are authenticated, and work for the same partner and parameters only. */
export interface EndpointList<Row, Shown = Row> {
  /** Reads up to `limit` rows after a position, in their order. */
  read(
    after: readonly [key: string | number, id: string] | undefined,
    limit: number,
  ): MaybePromise<readonly Row[]>
  /** The position of a row: its sort key and, for equal keys, its id. */
  positionOf(row: Row): readonly [key: string | number, id: string]
  /** What the response shows of a row, by default all. */
  present?(row: Row): Shown
}

/** What a handler gets, checked. */
export interface EndpointInput<Path extends string, Q extends EndpointSchemas, B extends EndpointSchemas> {
  /** The parameters of the query. */
  readonly query: EndpointValues<Q>
  /** The members of the body. */
  readonly body: EndpointValues<B>
  /** The parameters of the path, decoded. */
  readonly params: Readonly<Record<PathParameters<Path>, string>>
  /** The value of `Idempotency-Key`, if the endpoint takes one. */
  readonly idempotencyKey: string | undefined
  /** Reads the page of a list that the request names. Needs `paging`. */
  page<Row, Shown = Row>(list: EndpointList<Row, Shown>): MaybePromise<EndpointResult<Shown[]>>
}

/** An endpoint of the host's own. */
export interface EndpointDefinition<
  Path extends string,
  Q extends EndpointSchemas,
  B extends EndpointSchemas,
  R extends EndpointSchema = EndpointSchema,
> {
  /** The endpoint's name in reports and documents: 1–40 of `a-z 0-9 -`. Never change it. */
  readonly name: string
  /** `GET` includes `HEAD`. */
  readonly method: 'GET' | 'POST'
  /** Below the service: fixed segments of `A-Za-z0-9._~-`, and `:name` for a parameter. */
  readonly path: Path
  /** The scope that a key needs: a built-in one, or that of a module that the operator has defined. */
  readonly scope: EndpointScope
  /** What it returns or does, in a few words. */
  readonly summary: string
  /** A sentence or two for the documents. */
  readonly description?: string
  /**
   * Parameters of the query. A text becomes the number or boolean that it spells if the schema takes only that; an
   * array takes up to 20 values of a repeated parameter.
   */
  readonly query?: Q & SendableSchemas<Q>
  /** Members of the body of a POST, besides `partner`. */
  readonly body?: B & SendableSchemas<B>
  /** Adds the parameters `limit` and `cursor`: the number of rows by default and at most, up to 999. */
  readonly paging?: { readonly limit: number; readonly maximum: number }
  /** The schema of `data`: its type is that of the handler's, and the documents and smoke tests use it. */
  readonly response?: R
  /** Whether `Idempotency-Key` makes a request safe to retry: the handler has to make it so. */
  readonly takesIdempotencyKey?: boolean
  /** Status of a success, default 200. */
  readonly status?: 201
  /** The rate limit policies that apply, default `key`. */
  readonly limits?: readonly KeyPolicyName[]
  /**
   * The revision of what a GET reads: its responses are cached until this changes, for all live or all test keys of a
   * partner.
   */
  readonly revision?: () => MaybePromise<string>
  /** Answers a request that has passed every check. What it throws, other than a problem, is a 500 and is logged. */
  handle(
    input: EndpointInput<Path, Q, B>,
    grant: EndpointGrant,
  ): MaybePromise<EndpointResult<EndpointData<R>>>
}

const definitionKinds: OptionKinds<EndpointDefinition<string, EndpointSchemas, EndpointSchemas>> = {
  name: 'a text',
  method: 'anything',
  path: 'a text',
  scope: 'anything',
  summary: 'anything',
  description: 'anything',
  query: 'an object',
  body: 'an object',
  paging: 'an object',
  response: 'anything',
  takesIdempotencyKey: 'true or false',
  status: 'anything',
  limits: 'anything',
  revision: 'a function',
  handle: 'anything',
}

const listKinds: OptionKinds<EndpointList<unknown>> = {
  read: 'a function',
  positionOf: 'a function',
  present: 'a function',
}

/** An endpoint for the option `endpoints` of `createPartnerApi`. */
export interface OwnEndpoint {
  /** The endpoint's name in reports and documents. */
  readonly name: string
  /**
   * Adds it to a route table.
   * @throws {RangeError} for what cannot be served; the message names the endpoint and a command that helps.
   */
  addTo(routes: unknown[], modules: Modules): void
}

/**
 * Declares an endpoint of one's own. Requests to it pass the same checks as those to all others, in the same order.
 *
 * @throws {TypeError} for a member that does not exist, and for a value of another kind.
 * @throws {RangeError} for a schema that is not one of valibot, is asynchronous, takes what no request can send, or
 * cannot be described, and for a reserved name: `partner`, `cursor`, with `paging` also
 * `limit`, and those of an object's own members.
 * @example
 * ```ts
 * const orders = defineEndpoint({
 *   name: 'orders',
 *   method: 'GET',
 *   path: '/orders',
 *   scope: 'read:orders',
 *   summary: 'List orders',
 *   query: { state: v.optional(v.picklist(['open', 'closed'])) },
 *   handle: async ({ query }, { partner }) => ({ data: await listOrders(partner.slug, query.state) }),
 * })
 * const api = createPartnerApi({ store }, { endpoints: [orders] })
 * ```
 */
export function defineEndpoint<
  const Path extends string,
  Q extends EndpointSchemas = Record<never, never>,
  B extends EndpointSchemas = Record<never, never>,
  R extends EndpointSchema = EndpointSchema,
>(definition: EndpointDefinition<Path, Q, B, R>): OwnEndpoint {
  assertOptions('defineEndpoint', definition, definitionKinds)
  const { name, paging, response } = definition
  if (paging) assertOptions('defineEndpoint, paging', paging, { limit: 'anything', maximum: 'anything' })
  const misuse = findMisuse(definition)
  if (misuse !== undefined) throw new RangeError(`The endpoint ${name}: ${misuse}.`)
  const shown = response === undefined ? undefined : assertSchema(name, 'response', response)
  const reserved = paging ? ['partner', 'cursor', 'limit'] : ['partner', 'cursor']
  const query = assertInputs(name, definition.query ?? {}, reserved)
  const body = assertInputs(name, definition.body ?? {}, reserved)
  const pages = paging && {
    limit: input.limit('How many rows a page has.', paging.maximum, paging.limit),
    cursor: input.cursor,
  }
  const route = toRoute(definition, { ...query, ...pages }, { partner: input.partner, ...body }, shown)
  return {
    name,
    addTo(routes, modules) {
      assertUsable(route, routes as Route[], modules)
      const other = (routes as Route[]).find(({ atRoot, path, method }) =>
        !atRoot && overlap(path, route.path) && (path !== route.path || method === route.method)
      )
      if (other) {
        throw new RangeError(
          `The endpoint ${name}: its path is taken. ${route.method} ${route.path} and ${other.method} ` +
            `${other.path} of ${other.name} match the same path; a parameter matches every fixed segment.`,
        )
      }
      routes.push(route)
    },
  }
}

/** @throws {RangeError} unless a value is a schema that can be checked and described. */
function assertSchema(endpoint: string, member: string, schema: unknown): AnySchema {
  const misuse = findSchemaMisuse(schema)
  if (isSchema(schema) && misuse === undefined) return schema
  throw new RangeError(`The endpoint ${endpoint}: ${member} is refused: ${misuse}.`)
}

/** @throws {RangeError} for a schema that no request can meet, and for a reserved name. */
function assertInputs(endpoint: string, schemas: object, reserved: readonly string[]): InputSchemas {
  return Object.fromEntries(
    Object.entries(schemas).map(([member, value]) => {
      const schema = assertSchema(endpoint, member, value)
      const isReserved = member in {} || reserved.includes(member)
      const problem = findUnsendable(schema) ?? (isReserved ? 'the name is reserved' : undefined)
      if (problem === undefined) return [member, schema]
      throw new RangeError(`The endpoint ${endpoint}: ${member} is refused: ${problem}.`)
    }),
  )
}

type AnyDefinition = Pick<
  EndpointDefinition<string, EndpointSchemas, EndpointSchemas>,
  'method' | 'paging' | 'revision' | 'query' | 'body' | 'status' | 'summary' | 'description' | 'handle'
>

function findMisuse(
  { method, paging, revision, query, body, status, summary, description, handle }: AnyDefinition,
): string | undefined {
  const { limit = 1, maximum = 1 } = paging ?? {}
  if (![limit, maximum].every(Number.isInteger) || limit < 1 || maximum < limit || maximum > 999) {
    return 'paging must have integers from 1 to 999, limit at most maximum'
  }
  if (typeof summary !== 'string' || summary.trim() === '') return 'its summary must be a text'
  if (description !== undefined && typeof description !== 'string') return 'its description must be a text'
  if (typeof handle !== 'function') return `handle must be a function, not ${kindOf(handle)}`
  for (const [member, schemas] of Object.entries({ query, body })) {
    if (isSchema(schemas)) return `${member} must be schemas by name, not a schema`
  }
  if (status !== undefined && status !== 201) return `its status must be 201, not ${formatValue(status)}`
  if (method === 'POST' && revision) return 'only responses to GET are cached by a revision'
  if (method === 'GET' && status) return 'a GET has the status 200'
  return method === 'GET' && body ? 'a GET has no body' : undefined
}

function toRoute<
  Path extends string,
  Q extends EndpointSchemas,
  B extends EndpointSchemas,
  R extends EndpointSchema,
>(
  definition: EndpointDefinition<Path, Q, B, R>,
  query: InputSchemas,
  body: InputSchemas,
  response: AnySchema | undefined,
): KeyedRoute {
  const { name, method, path, scope, summary, description, revision, status } = definition
  return {
    access: 'key',
    name,
    method,
    path: path as `/${string}`,
    scope,
    summary,
    description,
    problems: rowProblems(path, method),
    parameters: toParameters(query, describeIssue),
    response,
    body: method === 'POST' ? toMembers(body, describeIssue) : undefined,
    takesIdempotencyKey: definition.takesIdempotencyKey === true,
    status,
    limits: definition.limits ?? ['key'],
    cacheBy: 'none',
    revision: revision && ((context) => runWithTimeout(revision, name, context)),
    handle(
      { query, rawQuery, body: { partner: _, ...body }, rawBody, params, idempotencyKey },
      grant,
      context,
    ) {
      const { limit, cursor, ...declared } = query as { limit: number; cursor: string | undefined }
      const page = <Row, Shown>(list: EndpointList<Row, Shown>) => {
        if (!definition.paging) throw new TypeError(`The endpoint ${name} reads a page and has no paging.`)
        assertOptions('page', list, listKinds)
        assertKind('page: read', list.read, 'a function')
        assertKind('page: positionOf', list.positionOf, 'a function')
        return readPage<Row>(context.cursors, { limit, cursor }, {
          partner: grant.partner.slug,
          // JSON has not all values that schemas return.
          identity: [name, params, sentFilters(rawQuery), rawBody],
          present: (row) => row,
          ...list,
        }) as MaybePromise<EndpointResult<Shown[]>>
      }
      // The schemas of the definition made these values, and its path has these parameters.
      const checked: EndpointInput<Path, Q, B> = {
        query: (definition.paging ? declared : query) as EndpointValues<Q>,
        body: body as EndpointValues<B>,
        params: params as EndpointInput<Path, Q, B>['params'],
        idempotencyKey,
        page,
      }
      const host = toHostGrant(grant)
      const run = () => definition.handle(checked, host.grant)
      return andThen(runWithTimeout(run, name, context, host.abort), (result) => toResult(result, name))
    },
  }
}

/** What a handler may find wrong with the row that a request is about. */
function rowProblems(path: string, method: string): ProblemCode[] {
  const codes: ProblemCode[] = path.includes(':') ? ['not_found'] : []
  if (method === 'POST') codes.push('conflict')
  return codes
}

/** The parameters of a query that stay the same on every page of a list. */
function sentFilters({ values }: Query) {
  return [...values].filter(([name]) => name !== 'limit' && name !== 'cursor').toSorted()
}

/** Whether a path can match both. */
function overlap(a: string, b: string): boolean {
  const one = a.split('/')
  const other = b.split('/')
  return one.length === other.length &&
    one.every((segment, index) =>
      segment === other[index] || segment.startsWith(':') || other[index]!.startsWith(':')
    )
}
