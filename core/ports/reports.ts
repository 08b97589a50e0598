import type { MaybePromise } from '../lib/promise.ts'
import type { Environment } from '../model.ts'
import type { Module, Scope } from '../policy/modules.ts'
import type { Signup } from './signups.ts'

/** What reports are made of. */
export interface Reports {
  /**
   * Adds all of the counts to what is counted already, or none. Never bumps a revision.
   *
   * @param batch Tells these counts from all others. What threw may have been done all the same when a store is
   * elsewhere: asked again for the same batch, it is done once.
   * @param keepFrom Counts of requests and signups of days before this one are removed, a few at a time.
   */
  recordUsage(counts: readonly UsageCount[], batch: string, keepFrom?: string): MaybePromise<void>

  /** Counts of a partner's live keys over days, both inclusive, `YYYY-MM-DD` in UTC. */
  summarise(partner: string, from: string, to: string): MaybePromise<SummaryCounts>

  /**
   * What happened to a partner up to `now`: its live signups, and from the audit trail what was decided about its
   * keys, scopes and modules; `key.expired` at the instant at which a key that was not revoked by then expired or
   * its overlap ended.
   */
  listActivity(partner: string, query: ActivityQuery, now: number): MaybePromise<readonly Activity[]>
}

/** What can happen to a partner that its report shows. */
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

/** Something that happened, not yet redacted. */
export type Activity =
  & {
    /** `act_…`, unique and the same at every reading. */
    readonly id: string
    readonly at: number
  }
  & (
    | { readonly type: 'signup.created'; readonly signup: Signup }
    | {
      readonly type:
        | 'key.issued'
        | 'key.rotated'
        | 'key.revoked'
        | 'key.disabled'
        | 'key.enabled'
        | 'key.expired'
      readonly keyId: string
      readonly hint: string
      readonly environment: Environment
    }
    | {
      readonly type: 'scope.granted' | 'scope.removed'
      readonly keyId: string
      readonly hint: string
      readonly environment: Environment
      readonly scope: Scope
    }
    | { readonly type: 'module.activated' | 'module.deactivated'; readonly module: Module }
  )

/** A question to the activity of a partner. Newest first, then by id. */
export interface ActivityQuery {
  /** Any of these; empty for all. */
  readonly types: readonly ActivityType[]
  /** Only what comes after this row. */
  readonly after: { readonly at: number; readonly id: string } | undefined
  /** 1 or more. */
  readonly limit: number
}

/** What a period held, counted: only what live keys did. Those that count nothing may be left out. */
export interface SummaryCounts {
  /** By slug of the plan; `undefined`: without one. */
  readonly signupsByPlan: readonly { readonly plan: string | undefined; readonly signups: number }[]
  /** By ISO 3166-1 alpha-2, upper case; `undefined`: without one. */
  readonly signupsByCountry: readonly { readonly country: string | undefined; readonly signups: number }[]
  /** By day, `YYYY-MM-DD` in UTC. */
  readonly signupsByDay: readonly { readonly day: string; readonly signups: number }[]
  /** By name of the route; `errors` are the requests that were answered with 400 or above. */
  readonly requestsByEndpoint: readonly {
    readonly endpoint: string
    readonly requests: number
    readonly errors: number
  }[]
  /** By day, `YYYY-MM-DD` in UTC; `errors` as above. */
  readonly requestsByDay: readonly {
    readonly day: string
    readonly requests: number
    readonly errors: number
  }[]
}

/** Requests of live keys, counted by partner, day and endpoint since the last flush. */
export interface UsageCount {
  /** Slug of the partner. */
  readonly partner: string
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string
  /** The route's name, which no release changes. */
  readonly endpoint: string
  /** 1 or more. */
  readonly requests: number
  /** Those of the requests that were answered with a status of 400 or above. */
  readonly errors: number
}
