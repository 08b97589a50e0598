import type { Page } from '../../core/http/message.ts'
import { assertInteger, MAX_TIMER_MS } from '../../core/lib/validate.ts'
import type { WebAbortSignal, WebRequest, WebResponse, WebUrl } from '../../core/lib/web.ts'
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
import { createRequestBuilder, sendWithRetries, type TransportOptions } from './transport.ts'

/** Whose client it is, and how it asks. */
export interface PartnerClientOptions {
  /**
   * Where the service is: `https://api.example`, with a path where a proxy has put it below one. Over `http:` the key
   * can be read on its way.
   */
  readonly url: string | WebUrl
  /** The key: a secret of a server. White space around it, as a file has it, is left out. */
  readonly key: string
  /** Slug of the partner that the key belongs to. */
  readonly partner: string
  /** Default `service`: the first part of the paths. */
  readonly serviceName?: string | undefined
  /** Milliseconds, 1–2,147,483,647, default 10,000: for each attempt, its answer included. */
  readonly timeoutMs?: number | undefined
  /** How often a request that may be sent again is, 0–100, default 2. */
  readonly retries?: number | undefined
  /** Whole seconds, 0–2,147,483, default 60: a service that wants to be left alone for longer is not waited for. */
  readonly maxRetryAfterSeconds?: number | undefined
  /** Sends a request; default the runtime's own `fetch`. */
  readonly fetch?: ((request: WebRequest) => Promise<WebResponse>) | undefined
}

/** What goes with one call. */
export interface CallOptions {
  /** Ends the call, pauses before another attempt included. */
  readonly signal?: WebAbortSignal | undefined
}

/** What goes with a signup. */
export interface SignUpOptions extends CallOptions {
  /** 1–255 printable ASCII characters that stand for this signup; drawn unless given. */
  readonly idempotencyKey?: string | undefined
}

/** A list that is read page by page: `for await` gets its rows, as long as there are any. */
export interface PagedList<Row> extends AsyncIterable<Row> {
  /** The same by pages, to keep a place in it: `page.next_cursor` goes into a later query. */
  pages(): AsyncIterable<{ readonly data: readonly Row[]; readonly page: Page }>
}

/**
 * Calls the service. Methods have the names of the operations in its OpenAPI document. All calls throw `PartnerProblem` for what it refuses and `ServiceUnreachableError` when it can't be reached; reads
 * are sent again when that may help, a signup because its idempotency key makes it safe.
 */
export interface PartnerClient {
  /** What the key is and may do. */
  verifyKey(options?: CallOptions): Promise<Verification>
  /** Enough to draw a widget. */
  widget(options?: CallOptions): Promise<Widget>
  /** The newest profiles. */
  recentProfiles(query?: RecentProfilesQuery, options?: CallOptions): Promise<readonly ProfileCard[]>
  /** The directory. */
  profiles(query?: ProfilesQuery, options?: CallOptions): PagedList<ProfileCard>
  /** One profile by its slug. */
  profile(slug: string, options?: CallOptions): Promise<Profile>
  /** The banner that shows now. */
  banner(options?: CallOptions): Promise<Banner>
  /** Countries, with their profiles counted. */
  countries(query?: CountriesQuery, options?: CallOptions): Promise<readonly Country[]>
  /** Industries, with their profiles counted. */
  industries(query?: IndustriesQuery, options?: CallOptions): Promise<readonly Industry[]>
  /** Plans, in the order in which they show. */
  plans(options?: CallOptions): Promise<readonly Plan[]>
  /** Signups and requests, counted by day. */
  reportSummary(query?: ReportSummaryQuery, options?: CallOptions): Promise<ReportSummary>
  /** What happened, newest first. */
  reportActivity(query?: ReportActivityQuery, options?: CallOptions): PagedList<Activity>
  /** Hands in a form. When it returns, the service has it. */
  signUp(form: SignupForm, options?: SignUpOptions): Promise<SignupReceipt>
}

/**
 * Makes a client.
 *
 * @throws {Error} in a browser: whoever opens the page could take the key.
 * @throws {TypeError} for a `url`, `key` or `partner` that can't be one.
 * @throws {RangeError} for a number out of its range.
 * @example
 * ```ts
 * const client = createPartnerClient({ url: 'https://api.example', key, partner: 'acme' })
 * for await (const { name } of client.profiles({ country: ['DE'] })) console.log(name)
 * ```
 */
export function createPartnerClient(options: PartnerClientOptions): PartnerClient {
  // Every browser calls itself Mozilla, in workers too; Node, Bun, Deno and Workers do not.
  if (globalThis.navigator?.userAgent?.startsWith('Mozilla/')) {
    throw new Error('A partner key is a secret: use it on your server, and never in a browser.')
  }
  const { partner, serviceName = 'service' } = options
  // What files have around it, a byte-order mark included, is no part of it.
  const key = String(options.key ?? '').trim()
  // A runtime that refuses to send a header repeats it, and this one is a secret.
  if (!/^[!-~]+$/.test(key)) throw new TypeError('key must be one key: printable ASCII without spaces.')
  // It stands in URLs: a key in its place would be in every log on the way.
  if (!/^[a-z\d-]+$/.test(partner ?? '')) {
    throw new TypeError("partner must be the slug of the key's partner.")
  }
  const buildRequest = createRequestBuilder(options.url, serviceName, key)
  const transport: TransportOptions = {
    timeoutMs: assertInteger('timeoutMs', options.timeoutMs ?? 10_000, 1, MAX_TIMER_MS),
    retries: assertInteger('retries', options.retries ?? 2, 0, 100),
    maxRetryAfterSeconds: assertInteger(
      'maxRetryAfterSeconds',
      options.maxRetryAfterSeconds ?? 60,
      0,
      Math.floor(MAX_TIMER_MS / 1000),
    ),
    fetch: options.fetch ?? ((request) => fetch(request)),
  }
  async function get<T>(path: string, query: object = {}, { signal }: CallOptions = {}): Promise<T> {
    const search = new URLSearchParams({ partner })
    for (const [name, value] of Object.entries(query)) {
      for (const item of [value].flat()) if (item !== undefined) search.append(name, String(item))
    }
    return await sendWithRetries(
      buildRequest({ target: `/${serviceName}${path}?${search}` }),
      transport,
      signal,
    ) as T
  }

  async function getData<T>(path: string, query?: object, options?: CallOptions): Promise<T> {
    return (await get<{ data: T }>(path, query, options)).data
  }

  async function post<T>(
    path: string,
    form: object,
    headers?: Readonly<Record<string, string>>,
    { signal }: CallOptions = {},
  ): Promise<T> {
    const request = buildRequest({ target: `/${serviceName}${path}`, headers, body: { ...form, partner } })
    return (await sendWithRetries(request, transport, signal) as { data: T }).data
  }

  function paginate<Row>(
    path: string,
    query: object | undefined,
    options: CallOptions | undefined,
  ): PagedList<Row> {
    async function* pages(): AsyncGenerator<{ readonly data: readonly Row[]; readonly page: Page }> {
      for (let currentQuery: { readonly cursor?: string | undefined } = query ?? {};;) {
        const response = await get<{ data: readonly Row[]; page: Page }>(path, currentQuery, options)
        yield response
        const { has_more, next_cursor: cursor } = response.page ?? {}
        if (has_more === false) return
        // A cache that passes queries over would give the same page for ever.
        if (!cursor || cursor === currentQuery.cursor) {
          throw new ServiceUnreachableError('What answers does not turn pages.')
        }
        currentQuery = { ...query, cursor }
      }
    }
    return {
      pages,
      async *[Symbol.asyncIterator]() {
        for await (const { data } of pages()) yield* data
      },
    }
  }

  return {
    verifyKey: (options) => post('/developer/verify-key', {}, undefined, options),
    widget: (options) => getData('/partner-widget', {}, options),
    recentProfiles: (query, options) => getData('/public/profiles/recent', query, options),
    profiles: (query, options) => paginate('/public/profiles', query, options),
    profile: (slug, options) => getData(`/public/profiles/${encodeURIComponent(slug)}`, {}, options),
    banner: (options) => getData('/public/banner', {}, options),
    countries: (query, options) => getData('/public/countries', query, options),
    industries: (query, options) => getData('/public/industries', query, options),
    plans: (options) => getData('/public/plans', {}, options),
    reportSummary: (query, options) => getData('/partner/reports/summary', query, options),
    reportActivity: (query, options) => paginate('/partner/reports/activity', query, options),
    signUp: (form, { idempotencyKey = crypto.randomUUID(), ...options } = {}) =>
      post('/partner/signups', form, { 'idempotency-key': idempotencyKey }, options),
  }
}

/** What `GET /service/public/profiles/recent` may be asked. */
export interface RecentProfilesQuery {
  /** How many profiles, 1–50, default `10`. */
  readonly limit?: number | undefined
}

/** What `GET /service/public/profiles` may be asked. */
export interface ProfilesQuery {
  /** Words that must start a word of name, headline, description or tags, 2–100 characters. */
  readonly q?: string | undefined
  /** ISO 3166-1 alpha-2, in either case: any of these, up to 20. */
  readonly country?: readonly string[] | undefined
  /** Industry slug: any of these, up to 20. */
  readonly industry?: readonly string[] | undefined
  /** The order: by name, or newest first, default `name`. */
  readonly sort?: 'name' | '-published_at' | undefined
  /** How many profiles a page has, 1–100, default `20`. */
  readonly limit?: number | undefined
  /** `next_cursor` of the page before. */
  readonly cursor?: string | undefined
}

/** What `GET /service/public/countries` may be asked. */
export interface CountriesQuery {
  /** Only those with a profile, default `false`. */
  readonly in_use?: boolean | undefined
  /** Language of the names, default `en`. */
  readonly locale?: string | undefined
}

/** What `GET /service/public/industries` may be asked. */
export interface IndustriesQuery {
  /** Only those with a profile, default `false`. */
  readonly in_use?: boolean | undefined
}

/** What `GET /service/partner/reports/summary` may be asked. */
export interface ReportSummaryQuery {
  /** First day, in UTC. */
  readonly from?: string | undefined
  /** Last day, in UTC; at most 366 days are told. */
  readonly to?: string | undefined
}

/** What `GET /service/partner/reports/activity` may be asked. */
export interface ReportActivityQuery {
  /** What happened: any of these, up to 20. */
  readonly type?: readonly ActivityType[] | undefined
  /** How many rows a page has, 1–100, default `20`. */
  readonly limit?: number | undefined
  /** `next_cursor` of the page before. */
  readonly cursor?: string | undefined
}

/** What somebody who signs up has filled in. */
export interface SignupForm {
  /** Address for mail. */
  readonly email: string
  /** Who signs up: one line, not blank. */
  readonly name: string
  /** For whom: one line, empty or not blank. */
  readonly company?: string | null | undefined
  /** ISO 3166-1 alpha-2 or `XK`, in either case. */
  readonly country?: string | null | undefined
  /** Slug of the plan. */
  readonly plan?: string | null | undefined
  /** Slug of the profile. */
  readonly profile?: string | null | undefined
  /** The language of the form, BCP 47. */
  readonly locale?: string | null | undefined
  /** What they wrote. */
  readonly message?: string | null | undefined
  /** When they agreed to be contacted. */
  readonly consent_at?: string | null | undefined
  /** What else the form knows: names of 1–40, values of up to 500 characters. */
  readonly metadata?: Readonly<Record<string, string>> | null | undefined
}
