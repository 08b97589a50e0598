import type { MaybePromise } from '../lib/promise.ts'
import type { Environment, Module, Scope } from '../model.ts'
import type { Signup } from './signups.ts'

/** The data of reports. */
export interface Reports {
  /**
   * Adds all of the counts, or none: those of live keys to the reports of their partners, and all to the usage of keys.
   * Does not change a revision.
   *
   * @param batch A unique id. A failed call may have succeeded in a remote store: repeating it with the same
   * id adds the counts once.
   * @param keepFrom The first day to keep: earlier counts of requests and signups are removed, a few at a time, and
   * so are problems after `PROBLEM_RETENTION_MS`. Without it, nothing has expired: the clock may have jumped.
   * @param problems Added with the counts. The store keeps the first `PROBLEMS_PER_HOUR` of each key and hour.
   */
  recordUsage(
    counts: readonly UsageCount[],
    batch: string,
    keepFrom?: string,
    problems?: readonly RecordedProblem[],
  ): MaybePromise<void>

  /** Problems, newest first; at one instant, the greatest id first. */
  listProblems(
    filter: ProblemFilter,
    after: ReportPosition | undefined,
    limit: number,
  ): MaybePromise<readonly RecordedProblem[]>

  /** Counts of a partner's live keys over days, both inclusive, `YYYY-MM-DD` in UTC. */
  summarise(partner: string, from: string, to: string): MaybePromise<SummaryCounts>

  /**
   * Counts of live keys over days, both inclusive: a row for each partner and day that has any, by slug, then day.
   *
   * @param after Only partners with a greater slug.
   * @param limit The most partners, 1 or more; each has all of its rows.
   */
  summarisePartners(
    from: string,
    to: string,
    after: string | undefined,
    limit: number,
  ): MaybePromise<readonly PartnerDay[]>

  /**
   * Requests of keys, live and test, over days, both inclusive, by day, key and endpoint.
   *
   * @param keyIds At most 1,000.
   */
  keyUsage(keyIds: readonly string[], from: string, to: string): MaybePromise<readonly KeyUsage[]>

  /**
   * The activity of a partner up to `now`: its live signups, changes of its keys, scopes and modules from the audit
   * log, and `key.expired` when a key that was not revoked expired or its overlap ended.
   */
  listActivity(partner: string, query: ActivityQuery, now: number): MaybePromise<readonly Activity[]>
}

/** The position of a row in a report, which is sorted by its instant, then by its id. */
export interface ReportPosition {
  /** Milliseconds since the epoch. */
  readonly at: number
  /** The id of the row. */
  readonly id: string
}

/** The types of activity in a partner's report. */
export const ACTIVITY_TYPES = [
  'signup.created',
  'key.issued',
  'key.rotated',
  'key.revoked',
  'key.disabled',
  'key.enabled',
  'key.expired',
  'scope.granted',
  'scope.removed',
  'module.activated',
  'module.deactivated',
] as const

/** A type of activity. */
export type ActivityType = (typeof ACTIVITY_TYPES)[number]

/** An activity before redaction; `id` is `act_…`, unique and stable. */
export type Activity =
  & { readonly id: string; readonly at: number }
  & (
    | { readonly type: 'signup.created'; readonly signup: Signup }
    | { readonly type: 'module.activated' | 'module.deactivated'; readonly module: Module }
    | (
      & { readonly keyId: string; readonly hint: string; readonly environment: Environment }
      & (
        | { readonly type: Extract<ActivityType, `key.${string}`> }
        | { readonly type: 'scope.granted' | 'scope.removed'; readonly scope: Scope }
      )
    )
  )

/** A query for activity, newest first, then by id. */
export interface ActivityQuery {
  /** Any of these types; empty for all. */
  readonly types: readonly ActivityType[]
  /** The position after which rows are listed; `undefined` for the first page. */
  readonly after: ReportPosition | undefined
  /** The most rows, 1 or more. */
  readonly limit: number
}

/** Counts of a period, for live keys only. Zero counts may be missing. */
export interface SummaryCounts {
  /** Signups by slug of the plan; `undefined` for those without one. */
  readonly signupsByPlan: readonly { readonly plan: string | undefined; readonly signups: number }[]
  /** Signups by ISO 3166-1 alpha-2, upper case; `undefined` for those without one. */
  readonly signupsByCountry: readonly { readonly country: string | undefined; readonly signups: number }[]
  /** Signups by day, `YYYY-MM-DD` in UTC. */
  readonly signupsByDay: readonly { readonly day: string; readonly signups: number }[]
  /** Requests by name of the route. */
  readonly requestsByEndpoint: readonly (RequestCounts & { readonly endpoint: string })[]
  /** Requests by day, `YYYY-MM-DD` in UTC. */
  readonly requestsByDay: readonly (RequestCounts & { readonly day: string })[]
}

/** The counts of one partner and day. */
export interface PartnerDay extends RequestCounts {
  /** Slug of the partner. */
  readonly partner: string
  /** Day in UTC, `YYYY-MM-DD`. */
  readonly day: string
  /** 0 or more, as requests and errors are. */
  readonly signups: number
}

/** The requests of one key, day and endpoint. */
export interface KeyUsage extends Omit<UsageCount, 'partner' | 'environment' | 'keyId'> {
  /** Public id of the key. */
  readonly keyId: string
}

/** A number of requests. */
export interface RequestCounts {
  /** The number of all requests, 0 or more. */
  readonly requests: number
  /** Requests with a response status of 400 or above. */
  readonly errors: number
}

/** Requests, counted by key, day and endpoint since the last flush. */
export interface UsageCount extends RequestCounts {
  /** Slug of the partner. */
  readonly partner: string
  /** Public id of the key; `undefined` when a server had too many to count each by itself. */
  readonly keyId: string | undefined
  /** The environment of the key. */
  readonly environment: Environment
  /** Day in UTC, `YYYY-MM-DD`. */
  readonly day: string
  /** The route's name, which is stable. */
  readonly endpoint: string
}

/** Milliseconds for which a problem is kept: 7 days. */
export const PROBLEM_RETENTION_MS = 604_800_000

/** A request of a key that was answered with a problem. */
export interface RecordedProblem {
  /** Slug of the partner. */
  readonly partner: string
  /** The environment of the key. */
  readonly environment: Environment
  /** Public id of the key. */
  readonly keyId: string
  /** When the request was checked, milliseconds since the epoch. */
  readonly at: number
  /** The id of the request, unique. */
  readonly id: string
  /** The members of the problem that responses show, as JSON. */
  readonly record: string
}

/** Selects problems after an instant, by members that are given. */
export type ProblemFilter =
  & { readonly since: number }
  & { readonly [Name in 'partner' | 'environment' | 'keyId' | 'id']?: RecordedProblem[Name] | undefined }
