/** What the methods of the client take: queries, and the form of a signup. */
import type { ActivityType } from '../../core/ports/reports.ts'

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
