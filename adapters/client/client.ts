import type { WebAbortSignal, WebRequest, WebResponse, WebUrl } from '../../core/http/web.ts'
import { ask, type Sending } from './ask.ts'
import { NoAnswer } from './partner-problem.ts'
import { createRequests } from './request.ts'
import type {
  Activity,
  Banner,
  Country,
  Industry,
  Page,
  Plan,
  Profile,
  ProfileCard,
  ReportSummary,
  SignupReceipt,
  Verification,
  Widget,
} from '../../core/wire.ts'
import type {
  CountriesQuery,
  IndustriesQuery,
  ProfilesQuery,
  RecentProfilesQuery,
  ReportActivityQuery,
  ReportSummaryQuery,
  SignupForm,
} from './queries.ts'

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
export interface Rows<Row> extends AsyncIterable<Row> {
  /** The same by pages, to keep a place in it: `page.next_cursor` goes into a later query. */
  pages(): AsyncIterable<{ readonly data: readonly Row[]; readonly page: Page }>
}

/**
 * Calls the service. Methods have the names of the operations in its OpenAPI document. All calls throw `PartnerProblem` for what it refuses and `NoAnswer` when it can't be reached; reads
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
  profiles(query?: ProfilesQuery, options?: CallOptions): Rows<ProfileCard>
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
  reportActivity(query?: ReportActivityQuery, options?: CallOptions): Rows<Activity>
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
  const requestFor = createRequests(options.url, serviceName, key)
  const sending: Sending = {
    timeoutMs: whole('timeoutMs', options.timeoutMs ?? 10_000, 1, MAX_TIMER_MS),
    retries: whole('retries', options.retries ?? 2, 0, 100),
    maxRetryAfterSeconds: whole(
      'maxRetryAfterSeconds',
      options.maxRetryAfterSeconds ?? 60,
      0,
      Math.floor(MAX_TIMER_MS / 1000),
    ),
    fetch: options.fetch ?? ((request) => fetch(request)),
  }
  async function read<T>(path: string, query: object = {}, { signal }: CallOptions = {}): Promise<T> {
    const search = new URLSearchParams({ partner })
    for (const [name, value] of Object.entries(query)) {
      for (const one of [value].flat()) if (one !== undefined) search.append(name, String(one))
    }
    return await ask(requestFor({ target: `/${serviceName}${path}?${search}` }), sending, signal) as T
  }

  async function data<T>(path: string, query?: object, options?: CallOptions): Promise<T> {
    return (await read<{ data: T }>(path, query, options)).data
  }

  async function post<T>(
    path: string,
    form: object,
    headers?: Readonly<Record<string, string>>,
    { signal }: CallOptions = {},
  ): Promise<T> {
    const request = requestFor({ target: `/${serviceName}${path}`, headers, body: { ...form, partner } })
    return (await ask(request, sending, signal) as { data: T }).data
  }

  function rows<Row>(path: string, query: object | undefined, options: CallOptions | undefined): Rows<Row> {
    async function* pages(): AsyncGenerator<{ readonly data: readonly Row[]; readonly page: Page }> {
      for (let asked: { readonly cursor?: string | undefined } = query ?? {};;) {
        const one = await read<{ data: readonly Row[]; page: Page }>(path, asked, options)
        yield one
        const { has_more, next_cursor: cursor } = one.page ?? {}
        if (has_more === false) return
        // A cache that passes queries over would give the same page for ever.
        if (!cursor || cursor === asked.cursor) {
          throw new NoAnswer('What answers does not turn pages.')
        }
        asked = { ...query, cursor }
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
    widget: (options) => data('/partner-widget', {}, options),
    recentProfiles: (query, options) => data('/public/profiles/recent', query, options),
    profiles: (query, options) => rows('/public/profiles', query, options),
    profile: (slug, options) => data(`/public/profiles/${encodeURIComponent(slug)}`, {}, options),
    banner: (options) => data('/public/banner', {}, options),
    countries: (query, options) => data('/public/countries', query, options),
    industries: (query, options) => data('/public/industries', query, options),
    plans: (options) => data('/public/plans', {}, options),
    reportSummary: (query, options) => data('/partner/reports/summary', query, options),
    reportActivity: (query, options) => rows('/partner/reports/activity', query, options),
    signUp: (form, { idempotencyKey = crypto.randomUUID(), ...options } = {}) =>
      post('/partner/signups', form, { 'idempotency-key': idempotencyKey }, options),
  }
}

/** The longest that a timer can wait. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** @throws {RangeError} unless `value` is an integer in its range. */
function whole(name: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new RangeError(`${name} must be an integer from ${min} to ${max}, and ${value} is not.`)
}
