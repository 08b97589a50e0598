import type { Page } from '../../core/http/message.ts'
import {
  assertInteger,
  MAX_TIMER_MS,
  type WebAbortSignal,
  type WebRequest,
  type WebResponse,
  type WebUrl,
} from '../../core/lib/options.ts'
import type {
  Activity,
  Banner,
  Country,
  Industry,
  KeyRevocation,
  KeyRotation,
  Plan,
  ProblemRecord,
  Profile,
  ProfileCard,
  ReportSummary,
  SignupReceipt,
  Verification,
  Widget,
} from '../../core/wire.ts'
import { ServiceUnreachableError } from './errors.ts'
import type {
  CountriesQuery,
  IndustriesQuery,
  ProfilesQuery,
  RecentProfilesQuery,
  ReportActivityQuery,
  ReportSummaryQuery,
  SignupForm,
} from './inputs.ts'
import { createRequestBuilder, sendWithRetries, type TransportOptions } from './transport.ts'

/** Settings of a client. */
export interface PartnerClientOptions {
  /**
   * Address of the service: `https://api.example`, with a path when a proxy serves it under one. `http:` sends the key
   * unencrypted.
   */
  readonly url: string | WebUrl
  /** The key: a secret, for servers only. Surrounding white space is ignored, so a file's content will do. */
  readonly key: string | undefined
  /** Slug of the partner that owns the key. */
  readonly partner: string
  /** First segment of the paths, default `service`. */
  readonly serviceName?: string | undefined
  /** Milliseconds for each attempt, its response included: 1–2,147,483,647, default 10,000. */
  readonly timeoutMs?: number | undefined
  /** Retries of a request, 0–100, default 2. */
  readonly retries?: number | undefined
  /** Whole seconds, 0–2,147,483, default 60: a longer `Retry-After` is not waited for. */
  readonly maxRetryAfterSeconds?: number | undefined
  /** Sends a request; defaults to the global `fetch`. */
  readonly fetch?: ((request: WebRequest) => Promise<WebResponse>) | undefined
}

/** Options of one call. */
export interface CallOptions {
  /** Aborts the call, including the delay before a retry. */
  readonly signal?: WebAbortSignal | undefined
}

/** Options of a rotation. */
export interface RotateKeyOptions extends CallOptions {
  /** Seconds for which the old key still works: 0–604,800, default 86,400. */
  readonly overlapSeconds?: number | undefined
  /** Stores the new key, a secret. The client uses it from then on; if this fails, it keeps the old one. */
  readonly store: (key: string) => PromiseLike<unknown> | void
}

/** Options of a signup. */
export interface SignUpOptions extends CallOptions {
  /** Identifies this signup: 1–255 printable ASCII characters; random by default. */
  readonly idempotencyKey?: string | undefined
}

/** Method and path of an endpoint, with its parameters in either form: `GET /orders/{id}` or `GET /orders/:id`. */
export type Route = `${'GET' | 'POST'} ${string}`

/** Options of a request to any endpoint. */
export interface RequestOptions extends CallOptions {
  /** The values of the parameters of the path, not encoded. */
  readonly params?: Readonly<Record<string, string | number>> | undefined
  /** Parameters of the query. An array repeats its parameter; `undefined` and `null` leave it out. */
  readonly query?: object | undefined
  /** Members of the body, for POST only. */
  readonly body?: object | undefined
  /** Makes a POST safe to retry, if the endpoint takes one: 1–255 printable ASCII characters. */
  readonly idempotencyKey?: string | undefined
}

/** The body of a successful response. */
export interface ResponseBody<Data> {
  /** What the endpoint returns. */
  readonly data: Data
  /** Present if `data` is a page of a list. To read the next one, pass `next_cursor` as `cursor` in the query. */
  readonly page?: Page
}

/** A paged list: `for await` iterates over its rows and fetches pages as needed. */
export interface PagedList<Row> extends AsyncIterable<Row> {
  /** Iterates over pages. To resume the list later, pass `page.next_cursor` as the `cursor` of a new query. */
  pages(): AsyncIterable<{ readonly data: readonly Row[]; readonly page: Page }>
}

/**
 * The endpoints of the service; methods are named after the operations in its OpenAPI document. Every call throws
 * `PartnerProblem` when the service refuses it and `ServiceUnreachableError` when the service can't be reached. Calls are
 * retried; a signup can be, because it has an idempotency key.
 */
export interface PartnerClient {
  /** What the key may do. */
  verifyKey(options?: CallOptions): Promise<Verification>
  /** What the keys of the partner were refused lately, newest first. */
  problems(query?: ProblemsQuery, options?: CallOptions): PagedList<ProblemRecord>
  /**
   * Replaces the key, if the operator allows it. If it fails at any point, call it again with the old key, which works
   * unless `overlapSeconds` was 0: a new key that was never used is replaced. Rejects before anything is sent: with a
   * `TypeError` without `store`, and with an `Error` during another rotation, whose key it would revoke.
   *
   * @returns The new key without its secret.
   */
  rotateKey(options: RotateKeyOptions): Promise<Omit<KeyRotation, 'key'>>
  /** Revokes the key, if the operator allows it. This is final. */
  revokeKey(options?: CallOptions): Promise<KeyRevocation>
  /** All data for a widget. */
  widget(options?: CallOptions): Promise<Widget>
  /** The newest profiles. */
  recentProfiles(query?: RecentProfilesQuery, options?: CallOptions): Promise<readonly ProfileCard[]>
  /** The directory of profiles. */
  profiles(query?: ProfilesQuery, options?: CallOptions): PagedList<ProfileCard>
  /** One profile by its slug. Rejects with a `TypeError` for `''`, `'.'` and `'..'`. */
  profile(slug: string, options?: CallOptions): Promise<Profile>
  /** The current banner. */
  banner(options?: CallOptions): Promise<Banner>
  /** Countries and their number of profiles. */
  countries(query?: CountriesQuery, options?: CallOptions): Promise<readonly Country[]>
  /** Industries and their number of profiles. */
  industries(query?: IndustriesQuery, options?: CallOptions): Promise<readonly Industry[]>
  /** Plans in display order. */
  plans(options?: CallOptions): Promise<readonly Plan[]>
  /** Daily counts of signups and requests. */
  reportSummary(query?: ReportSummaryQuery, options?: CallOptions): Promise<ReportSummary>
  /** Events, newest first. */
  reportActivity(query?: ReportActivityQuery, options?: CallOptions): PagedList<Activity>
  /** Submits a form. The signup is stored when the promise is fulfilled. */
  signUp(form: SignupForm, options?: SignUpOptions): Promise<SignupReceipt>
  /**
   * Calls an endpoint that the operator has added. `partner` is added to the request. A POST is retried only if it has an
   * `idempotencyKey`. `Data` is not checked. Rejects with a `TypeError`, before anything is sent, for a path that could
   * lead elsewhere and for a missing parameter.
   *
   * @param route Its path begins at or below the name of the service: `GET /service/orders` or `GET /orders`.
   */
  request<Data = unknown>(route: Route, options?: RequestOptions): Promise<ResponseBody<Data>>
  /** A paged list of an endpoint that the operator has added. */
  paginate<Row = unknown>(route: `GET ${string}`, options?: RequestOptions): PagedList<Row>
}

/**
 * Makes a client.
 *
 * @throws {Error} in a browser, where every visitor could read the key.
 * @throws {TypeError} for an invalid `url`, `key` or `partner`, and for an unknown option.
 * @throws {RangeError} for a number out of its range.
 * @example
 * ```ts
 * const client = createPartnerClient({ url: 'https://api.example', key, partner: 'acme' })
 * for await (const { name } of client.profiles({ country: ['DE'] })) console.log(name)
 * ```
 */
export function createPartnerClient(options: PartnerClientOptions): PartnerClient {
  const { request, read, paginate, below, useKey } = createCalls(options)
  let isRotating = false
  return {
    verifyKey: (options) => read('POST /developer/verify-key', options),
    problems: (query, options) => paginate('GET /developer/problems', { query, signal: options?.signal }),
    async rotateKey({ overlapSeconds, store, ...options }) {
      if (typeof store !== 'function') throw new TypeError('store must be a function.')
      if (isRotating) throw new Error('The key is being rotated.')
      isRotating = true
      try {
        const body = { overlap_seconds: overlapSeconds }
        const { key, ...rotation } = await read<KeyRotation>('POST /developer/rotate-key', options, { body })
        await store(key)
        useKey(key)
        return rotation
      } finally {
        isRotating = false
      }
    },
    revokeKey: (options) => read('POST /developer/revoke-key', options),
    widget: (options) => read('GET /partner-widget', options),
    recentProfiles: (query, options) => read('GET /public/profiles/recent', options, { query }),
    profiles: (query, options) => paginate('GET /public/profiles', { query, signal: options?.signal }),
    profile: (slug, options) => read('GET /public/profiles/{slug}', options, { params: { slug } }),
    banner: (options) => read('GET /public/banner', options),
    countries: (query, options) => read('GET /public/countries', options, { query }),
    industries: (query, options) => read('GET /public/industries', options, { query }),
    plans: (options) => read('GET /public/plans', options),
    reportSummary: (query, options) => read('GET /partner/reports/summary', options, { query }),
    reportActivity: (query, options) =>
      paginate('GET /partner/reports/activity', { query, signal: options?.signal }),
    signUp: (body, { idempotencyKey = crypto.randomUUID(), ...options } = {}) =>
      read('POST /partner/signups', options, { body, idempotencyKey }),
    request: async (route, options) => await request(below(route), options),
    paginate: (route, options) => paginate(below(route), options),
  }
}

/** The three kinds of calls: for a whole body, for its `data`, and for a paged list. Paths are relative to the service. */
function createCalls(options: PartnerClientOptions) {
  const { url, key, partner, serviceName, ...transport } = parseOptions(options)
  let buildRequest = createRequestBuilder(url, serviceName, key)
  const pathname = new URL(url).pathname.replace(/\/+$/, '')

  async function request<Data>(
    route: Route,
    { params, query = {}, body, idempotencyKey, signal, ...unknown }: RequestOptions = {},
  ): Promise<ResponseBody<Data>> {
    rejectUnknown(unknown, 'a request')
    const path = fillPath(route, params)
    const isPost = route.startsWith('POST')
    if (body && !isPost) throw new TypeError('body is for POST only.')
    const search = new URLSearchParams(isPost ? {} : { partner })
    for (const [name, value] of Object.entries(query)) {
      for (const item of [value].flat()) if (item != null) search.append(name, String(item))
    }
    const built = buildRequest({
      target: `/${serviceName}${path}${search.size > 0 ? `?${search}` : ''}`,
      headers: idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
      body: isPost ? { ...body, partner } : undefined,
    })
    const isRetryable = !isPost || idempotencyKey !== undefined ||
      /^\/developer\/(verify|rotate)-key$/.test(path)
    return await sendWithRetries(
      built,
      isRetryable ? transport : { ...transport, retries: 0 },
      signal,
    ) as ResponseBody<Data>
  }

  async function* readPages<Row>(route: Route, options: RequestOptions = {}) {
    let query: { readonly cursor?: unknown } = options.query ?? {}
    const seen = new Set([query.cursor])
    for (;;) {
      const { data, page } = await request<readonly Row[]>(route, { ...options, query })
      if (!page) throw new ServiceUnreachableError('The response is not a page.')
      yield { data, page }
      const { has_more, next_cursor: cursor } = page
      if (has_more === false) return
      // A cache that ignores queries would return the same pages forever.
      if (!cursor || seen.has(cursor)) throw new ServiceUnreachableError('The list does not advance.')
      seen.add(cursor)
      query = { ...query, cursor }
    }
  }

  return {
    /** Documents show paths with the name of the service, and `verifyKey` with the base path, too. */
    below(route: Route): Route {
      const [start, end] = [route.indexOf('/'), route.indexOf(`/${serviceName}/`)]
      if (end < 0 || !pathname.endsWith(route.slice(start, end))) return route
      return `${route.slice(0, start)}${route.slice(end + serviceName.length + 1)}` as Route
    },

    useKey(key: string): void {
      buildRequest = createRequestBuilder(url, serviceName, key)
    },

    request,

    async read<Data>(route: Route, options?: CallOptions, more?: RequestOptions): Promise<Data> {
      return (await request<Data>(route, { ...more, signal: options?.signal })).data
    },

    paginate<Row>(route: Route, options?: RequestOptions): PagedList<Row> {
      return {
        pages: () => readPages(route, options),
        async *[Symbol.asyncIterator]() {
          for await (const { data } of readPages<Row>(route, options)) yield* data
        },
      }
    },
  }
}

/**
 * @returns The path of a route with the values of its parameters.
 * @throws {TypeError} for what a URL would not have as its path, such as `//`, dot segments or a query.
 */
function fillPath(route: Route, params: RequestOptions['params']): string {
  if (!/^(?:GET|POST) (?:\/(?!\.{1,2}(?:\/|$))(?:[\w.~-]+|:\w+|\{\w+\}))+$/.test(route)) {
    throw new TypeError("route must be like 'GET /orders/{id}', with values in params.")
  }
  return route.replace(/^\w+ /, '').replace(/[:{](\w+)\}?/g, (_, name: string) => {
    const value = String(params && Object.hasOwn(params, name) ? params[name] ?? '' : '')
    // The path of an empty or dot segment would be that of another endpoint.
    if (/^\.{0,2}$/.test(value)) throw new TypeError(`${name} must not be '', '.' or '..'.`)
    return encodeURIComponent(value)
  })
}

function rejectUnknown(unknown: object, owner: string): void {
  const [name] = Object.keys(unknown)
  if (name !== undefined) throw new TypeError(`${name} is not an option of ${owner}.`)
}

function parseOptions(options: PartnerClientOptions) {
  // Every browser's user agent starts with Mozilla, in workers too; that of Node, Bun, Deno and Workers does not.
  if (globalThis.navigator?.userAgent?.startsWith('Mozilla/')) {
    throw new Error('A partner key is a secret: use it on your server, never in a browser.')
  }
  const {
    url,
    key: givenKey,
    partner,
    serviceName = 'service',
    timeoutMs = 10_000,
    retries = 2,
    maxRetryAfterSeconds = 60,
    fetch: send = (request) => fetch(request),
    ...unknown
  } = options
  rejectUnknown(unknown, 'the client')
  // Files often end with a line feed, or start with a byte-order mark.
  const key = String(givenKey ?? '').trim()
  if (key === '') throw new TypeError('key must be set, and it is undefined or empty.')
  // Some runtimes quote a header value that they reject, and this one is a secret.
  if (!/^[!-~]+$/.test(key)) throw new TypeError('key must be one key: printable ASCII without spaces.')
  // The partner is part of URLs, which are logged: a key must not get there by mistake.
  if (!/^[a-z\d-]+$/.test(partner ?? '')) {
    throw new TypeError("partner must be the slug of the key's partner.")
  }
  if (String(url).replace(/\/+$/, '').endsWith(`/${serviceName}`)) {
    throw new TypeError(`url must be the address without /${serviceName}.`)
  }
  return {
    url,
    key,
    partner,
    serviceName,
    timeoutMs: assertInteger('timeoutMs', timeoutMs, 1, MAX_TIMER_MS),
    retries: assertInteger('retries', retries, 0, 100),
    maxRetryAfterSeconds: assertInteger('maxRetryAfterSeconds', maxRetryAfterSeconds, 0, 2_147_483),
    fetch: send,
  } satisfies TransportOptions & Record<string, unknown>
}

/** The query of `GET /service/developer/problems`. */
export type ProblemsQuery = Pick<ReportActivityQuery, 'limit' | 'cursor'>
