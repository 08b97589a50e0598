/** The methods of the client, and what they take and return. */
import type { Page } from '../../core/http/message.ts'
import type { WebAbortSignal, WebRequest, WebResponse, WebUrl } from '../../core/lib/web-globals.ts'
import type { ActivityType } from '../../core/ports/reports.ts'
import type * as wire from '../../core/wire.ts'
import type { ResponseInfo, WithResponse } from './response.ts'
import type { Hooks } from './transport.ts'

/** Settings of a client. */
export interface PartnerClientOptions extends Hooks {
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
  /** Name and version of your program, such as `acme-website/2.1`: added to the `User-Agent` of this package. */
  readonly userAgent?: string | undefined
  /**
   * Sends a request; defaults to the global `fetch`. `createCachingFetch` makes one that keeps responses; the
   * `fetch` of a service or an app calls it without a port.
   */
  readonly fetch?: ((request: WebRequest) => WebResponse | Promise<WebResponse>) | undefined
}

/** Options of one call. Its limits default to those of the client. */
export interface CallOptions extends Pick<PartnerClientOptions, 'timeoutMs' | 'retries'> {
  /** Aborts the call, including the delay before a retry. */
  readonly signal?: WebAbortSignal | undefined
  /** Further header fields. They do not replace those of the client: key, media types, version, user agent. */
  readonly headers?: Readonly<Record<string, string>> | undefined
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

/** The query of `GET /service/public/profiles/recent`. */
export interface RecentProfilesQuery {
  /** Number of profiles, 1–50, default `10`. */
  readonly limit?: number | undefined
}

/** The query of `GET /service/developer/problems`. */
export interface ProblemsQuery {
  /** Rows per page, 1–100, default `20`. */
  readonly limit?: number | undefined
  /** `next_cursor` of the previous page. */
  readonly cursor?: string | undefined
}

/** The query of `GET /service/public/profiles`. */
export interface ProfilesQuery extends ProblemsQuery {
  /** Search text, 2–100 characters: each word must start a word of name, headline, description or tags. */
  readonly q?: string | undefined
  /** ISO 3166-1 alpha-2 code in either case, or up to 20: profiles of any of them. */
  readonly country?: string | readonly string[] | undefined
  /** Slug of an industry, or up to 20: profiles of any of them. */
  readonly industry?: string | readonly string[] | undefined
  /** The order: by name, or newest first. Default: `name`. */
  readonly sort?: 'name' | '-published_at' | undefined
}

/** The query of `GET /service/public/industries`. */
export interface IndustriesQuery {
  /** Whether to list entries with a profile only, default `false`. */
  readonly in_use?: boolean | undefined
}

/** The query of `GET /service/public/countries`. */
export interface CountriesQuery extends IndustriesQuery {
  /** Language of the names, default `en`. */
  readonly locale?: string | undefined
}

/** The query of `GET /service/partner/reports/summary`. */
export interface ReportSummaryQuery {
  /** First day, `YYYY-MM-DD` in UTC. */
  readonly from?: string | undefined
  /** Last day, at most 366 days in all. */
  readonly to?: string | undefined
}

/** The query of `GET /service/partner/reports/activity`. */
export interface ReportActivityQuery extends ProblemsQuery {
  /** Type of events, or up to 20: rows of any of them. */
  readonly type?: ActivityType | readonly ActivityType[] | undefined
}

/** The fields of a signup form. */
export interface SignupForm {
  /** E-mail address. */
  readonly email: string
  /** Name of the person, on one line. */
  readonly name: string
  /** The person's company, on one line. */
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

/** The body of a successful response. */
export interface ResponseBody<Data> {
  /** What the endpoint returns. */
  readonly data: Data
  /** Present if `data` is a page of a list. To read the next one, pass `next_cursor` as `cursor` in the query. */
  readonly page?: Page
  /** Status and headers; not enumerable. */
  readonly response: ResponseInfo
}

/** A page of a list. To resume the list later, pass `page.next_cursor` as the `cursor` of a new query. */
export type ListPage<Row> = ResponseBody<readonly Row[]> & { readonly page: Page }

/**
 * A paged list. `await` reads its first page, once. `for await` iterates over the rows of all pages from the first one,
 * and fetches pages as needed. Nothing is sent before.
 */
export interface PagedList<Row> extends AsyncIterable<Row>, Pick<Promise<ListPage<Row>>, 'then' | 'catch'> {
  /** Iterates over pages. */
  pages(): AsyncIterable<ListPage<Row>>
}

/**
 * The endpoints of the service; methods are named after the operations in its OpenAPI document. Every call throws
 * `PartnerProblem` when the service refuses it and `ServiceUnreachableError` when the service can't be reached. Calls
 * are retried; a signup can be, because it has an idempotency key. All results and errors have a member `response`.
 */
export interface PartnerClient {
  /** What the key may do. */
  verifyKey(options?: CallOptions): Promise<WithResponse<wire.Verification>>
  /** What the keys of the partner were refused lately, newest first. */
  problems(query?: ProblemsQuery, options?: CallOptions): PagedList<wire.ProblemRecord>
  /**
   * Replaces the key, if the operator allows it. If it fails at any point, call it again with the old key, which works
   * unless `overlapSeconds` was 0: a new key that was never used is replaced. Rejects before anything is sent: with a
   * `TypeError` without `store`, and with an `Error` during another rotation, whose key it would revoke.
   *
   * @returns The new key without its secret.
   */
  rotateKey(options: RotateKeyOptions): Promise<WithResponse<Omit<wire.KeyRotation, 'key'>>>
  /** Revokes the key, if the operator allows it. This is final. */
  revokeKey(options?: CallOptions): Promise<WithResponse<wire.KeyRevocation>>
  /** All data for a widget. */
  widget(options?: CallOptions): Promise<WithResponse<wire.Widget>>
  /** The newest profiles. */
  recentProfiles(
    query?: RecentProfilesQuery,
    options?: CallOptions,
  ): Promise<WithResponse<readonly wire.ProfileCard[]>>
  /** The directory of profiles. */
  profiles(query?: ProfilesQuery, options?: CallOptions): PagedList<wire.ProfileCard>
  /** One profile by its slug. Rejects with a `TypeError` for `''`, `'.'` and `'..'`. */
  profile(slug: string, options?: CallOptions): Promise<WithResponse<wire.Profile>>
  /** The current banner. */
  banner(options?: CallOptions): Promise<WithResponse<wire.Banner>>
  /** Countries and their number of profiles. */
  countries(query?: CountriesQuery, options?: CallOptions): Promise<WithResponse<readonly wire.Country[]>>
  /** Industries and their number of profiles. */
  industries(query?: IndustriesQuery, options?: CallOptions): Promise<WithResponse<readonly wire.Industry[]>>
  /** Plans in display order. */
  plans(options?: CallOptions): Promise<WithResponse<readonly wire.Plan[]>>
  /** Daily counts of signups and requests. */
  reportSummary(query?: ReportSummaryQuery, options?: CallOptions): Promise<WithResponse<wire.ReportSummary>>
  /** Events, newest first. */
  reportActivity(query?: ReportActivityQuery, options?: CallOptions): PagedList<wire.Activity>
  /** Submits a form. The signup is stored when the promise is fulfilled. */
  signUp(form: SignupForm, options?: SignUpOptions): Promise<WithResponse<wire.SignupReceipt>>
  /**
   * Calls an endpoint that the operator has added. `partner` is added to the request. A POST is retried only if it
   * has an `idempotencyKey`. `Data` is not checked. Rejects with a `TypeError`, before anything is sent, for a path
   * that could lead elsewhere and for a missing parameter.
   *
   * @param route Its path begins at or below the name of the service: `GET /service/orders` or `GET /orders`.
   */
  request<Data = unknown>(route: Route, options?: RequestOptions): Promise<ResponseBody<Data>>
  /** A paged list of an endpoint that the operator has added. */
  paginate<Row = unknown>(route: `GET ${string}`, options?: RequestOptions): PagedList<Row>
}
