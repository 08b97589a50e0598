import type { Page } from '../../core/http/message.ts'
import {
  assertInteger,
  MAX_TIMER_MS,
  type WebAbortSignal,
  type WebRequest,
  type WebResponse,
  type WebUrl,
} from '../../core/lib/options.ts'
import type { ActivityType } from '../../core/ports/reports.ts'
import type {
  Activity,
  Banner,
  Country,
  Industry,
  Plan,
  Profile,
  ProfileCard,
  ReportSummary,
  SignupReceipt,
  Verification,
  Widget,
} from '../../core/wire.ts'
import { ServiceUnreachableError } from './errors.ts'
import {
  createRequestBuilder,
  type RequestSpec,
  sendWithRetries,
  type TransportOptions,
} from './transport.ts'

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

/** Options of a signup. */
export interface SignUpOptions extends CallOptions {
  /** Identifies this signup: 1–255 printable ASCII characters; random by default. */
  readonly idempotencyKey?: string | undefined
}

/** A paged list: `for await` iterates over its rows and fetches pages as needed. */
export interface PagedList<Row> extends AsyncIterable<Row> {
  /** Iterates over pages. To resume the list later, pass `page.next_cursor` as the `cursor` of a new query. */
  pages(): AsyncIterable<{ readonly data: readonly Row[]; readonly page: Page }>
}

/**
 * The endpoints of the service; methods are named after the operations in its OpenAPI document. Every call throws
 * `PartnerProblem` when the service refuses it and `ServiceUnreachableError` when the service can't be reached. All
 * calls are retried; a signup can be, because it has an idempotency key.
 */
export interface PartnerClient {
  /** What the key may do. */
  verifyKey(options?: CallOptions): Promise<Verification>
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
  const { get, post, list } = createCalls(options)
  return {
    verifyKey: (options) => post('/developer/verify-key', {}, options),
    widget: (options) => get('/partner-widget', {}, options),
    recentProfiles: (query, options) => get('/public/profiles/recent', query, options),
    profiles: (query, options) => list('/public/profiles', query, options),
    // The path of an empty or dot segment would be that of another endpoint.
    profile: (slug, options) =>
      /^\.{0,2}$/.test(slug ?? '')
        ? Promise.reject(new TypeError('slug must be the slug of a profile.'))
        : get(`/public/profiles/${encodeURIComponent(slug)}`, {}, options),
    banner: (options) => get('/public/banner', {}, options),
    countries: (query, options) => get('/public/countries', query, options),
    industries: (query, options) => get('/public/industries', query, options),
    plans: (options) => get('/public/plans', {}, options),
    reportSummary: (query, options) => get('/partner/reports/summary', query, options),
    reportActivity: (query, options) => list('/partner/reports/activity', query, options),
    signUp: (form, { idempotencyKey = crypto.randomUUID(), ...options } = {}) =>
      post('/partner/signups', form, options, { 'idempotency-key': idempotencyKey }),
  }
}

type ListQuery = { readonly cursor?: string | undefined }

/** The three kinds of calls: a read, a write, and the reads of a paged list. Paths are relative to the service. */
function createCalls(options: PartnerClientOptions) {
  const { url, key, partner, serviceName, ...transport } = parseOptions(options)
  const buildRequest = createRequestBuilder(url, serviceName, key)

  async function send<T>(path: string, spec: Omit<RequestSpec, 'target'>, options?: CallOptions): Promise<T> {
    const request = buildRequest({ target: `/${serviceName}${path}`, ...spec })
    return await sendWithRetries(request, transport, options?.signal) as T
  }

  function getPage<T>(path: string, query: object = {}, options?: CallOptions): Promise<T> {
    const search = new URLSearchParams({ partner })
    for (const [name, value] of Object.entries(query)) {
      for (const item of [value].flat()) if (item != null) search.append(name, String(item))
    }
    return send(`${path}?${search}`, {}, options)
  }

  async function* readPages<Row>(path: string, query?: ListQuery, options?: CallOptions) {
    const seen = new Set([query?.cursor])
    for (let currentQuery = query ?? {};;) {
      const response = await getPage<{ readonly data: readonly Row[]; readonly page: Page }>(
        path,
        currentQuery,
        options,
      )
      yield response
      const { has_more, next_cursor: cursor } = response.page ?? {}
      if (has_more === false) return
      // A cache that ignores queries would return the same pages forever.
      if (!cursor || seen.has(cursor)) throw new ServiceUnreachableError('The list does not advance.')
      seen.add(cursor)
      currentQuery = { ...query, cursor }
    }
  }

  return {
    async get<T>(path: string, query?: object, options?: CallOptions): Promise<T> {
      return (await getPage<{ data: T }>(path, query, options)).data
    },

    async post<T>(
      path: string,
      form: object,
      options?: CallOptions,
      headers?: Readonly<Record<string, string>>,
    ): Promise<T> {
      return (await send<{ data: T }>(path, { headers, body: { ...form, partner } }, options)).data
    },

    list<Row>(path: string, query: ListQuery | undefined, options: CallOptions | undefined): PagedList<Row> {
      return {
        pages: () => readPages(path, query, options),
        async *[Symbol.asyncIterator]() {
          for await (const { data } of readPages<Row>(path, query, options)) yield* data
        },
      }
    },
  }
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
  const [name] = Object.keys(unknown)
  if (name !== undefined) throw new TypeError(`${name} is not an option of the client.`)
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

/** The query of `GET /service/public/profiles/recent`. */
export interface RecentProfilesQuery {
  /** Number of profiles, 1–50, default `10`. */
  readonly limit?: number | undefined
}

/** The query of `GET /service/public/profiles`. */
export interface ProfilesQuery {
  /** Search text, 2–100 characters: each word must start a word of name, headline, description or tags. */
  readonly q?: string | undefined
  /** ISO 3166-1 alpha-2 codes in either case, up to 20: profiles of any of them. */
  readonly country?: readonly string[] | undefined
  /** Slugs of industries, up to 20: profiles of any of them. */
  readonly industry?: readonly string[] | undefined
  /** By name, or newest first; default `name`. */
  readonly sort?: 'name' | '-published_at' | undefined
  /** Profiles per page, 1–100, default `20`. */
  readonly limit?: number | undefined
  /** `next_cursor` of the previous page. */
  readonly cursor?: string | undefined
}

/** The query of `GET /service/public/countries`. */
export interface CountriesQuery {
  /** Only entries with a profile, default `false`. */
  readonly in_use?: boolean | undefined
  /** Language of the names, default `en`. */
  readonly locale?: string | undefined
}

/** The query of `GET /service/public/industries`. */
export interface IndustriesQuery {
  /** Only entries with a profile, default `false`. */
  readonly in_use?: boolean | undefined
}

/** The query of `GET /service/partner/reports/summary`. */
export interface ReportSummaryQuery {
  /** First day, `YYYY-MM-DD` in UTC. */
  readonly from?: string | undefined
  /** Last day, at most 366 days in all. */
  readonly to?: string | undefined
}

/** The query of `GET /service/partner/reports/activity`. */
export interface ReportActivityQuery {
  /** Types of events, up to 20: rows of any of them. */
  readonly type?: readonly ActivityType[] | undefined
  /** Rows per page, 1–100, default `20`. */
  readonly limit?: number | undefined
  /** `next_cursor` of the previous page. */
  readonly cursor?: string | undefined
}

/** The fields of a signup form. */
export interface SignupForm {
  /** E-mail address. */
  readonly email: string
  /** Name of the person, on one line. */
  readonly name: string
  /** Their company, on one line. */
  readonly company?: string | null | undefined
  /** ISO 3166-1 alpha-2 or `XK`, in either case. */
  readonly country?: string | null | undefined
  /** Slug of a plan. */
  readonly plan?: string | null | undefined
  /** Slug of a profile. */
  readonly profile?: string | null | undefined
  /** Language of the form, BCP 47. */
  readonly locale?: string | null | undefined
  /** Free text, up to 2,000 characters. */
  readonly message?: string | null | undefined
  /** When they consented to be contacted, RFC 3339. */
  readonly consent_at?: string | null | undefined
  /** Up to 20 further fields: names of 1–40 characters, values of up to 500. */
  readonly metadata?: Readonly<Record<string, string>> | null | undefined
}
