/** What the client's methods take. */
import type { ActivityType } from '../../core/reports/activity.ts'

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
