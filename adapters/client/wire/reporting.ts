/** Written from the route table by test/client/write-wire.ts. */

/** What a period held, counted. */
export interface ReportSummary {
  /** What was counted, in UTC. */
  readonly period: {
    /** First day. */
    readonly from: string
    /** Last day. */
    readonly to: string
  }
  /** Its signups. */
  readonly signups: {
    /** Signups of live keys. */
    readonly total: number
    /** The most first. */
    readonly by_plan: readonly ({
      /** Slug of the plan. */
      readonly plan: string | null
      /** Signups of live keys. */
      readonly signups: number
    })[]
    /** The most first. */
    readonly by_country: readonly ({
      /** ISO 3166-1 alpha-2, or `XK`. */
      readonly country: string | null
      /** Signups of live keys. */
      readonly signups: number
    })[]
  }
  /** Its requests. */
  readonly requests: {
    /** Requests of live keys. */
    readonly total: number
    /** Those of them that were answered with 400 or above. */
    readonly errors: number
    /** The most first. */
    readonly by_endpoint: readonly ({
      /** HTTP method. */
      readonly method: 'GET' | 'POST'
      /** Path with `{slug}` for a parameter. */
      readonly path: string
      /** Requests of live keys. */
      readonly requests: number
      /** Those of them that were answered with 400 or above. */
      readonly errors: number
    })[]
  }
  /** A row for every day of the period. */
  readonly daily: readonly ({
    /** The day, in UTC. */
    readonly date: string
    /** Signups of live keys. */
    readonly signups: number
    /** Requests of live keys. */
    readonly requests: number
    /** Those of them that were answered with 400 or above. */
    readonly errors: number
  })[]
}

/** Something that happened. Nothing personal stands in it. */
export type Activity = {
  /** Names the row. */
  readonly id: string
  /** When it happened. */
  readonly occurred_at: string
  /** What happened. */
  readonly type: 'signup.created'
  /** Its subject. */
  readonly subject: {
    /** Id of the signup. */
    readonly signup_id: string
    /** Masked. */
    readonly email: string
    /** Initials. */
    readonly name: string
    /** ISO 3166-1 alpha-2, or `XK`. */
    readonly country: string | null
    /** Slug of the plan. */
    readonly plan: string | null
  }
} | {
  /** Names the row. */
  readonly id: string
  /** When it happened. */
  readonly occurred_at: string
  /** What happened. */
  readonly type: 'key.issued' | 'key.rotated' | 'key.revoked' | 'key.disabled' | 'key.enabled' | 'key.expired'
  /** Its subject. */
  readonly subject: {
    /** Public id of the key. */
    readonly key_id: string
    /** Its last four characters. */
    readonly hint: string
  }
} | {
  /** Names the row. */
  readonly id: string
  /** When it happened. */
  readonly occurred_at: string
  /** What happened. */
  readonly type: 'scope.granted' | 'scope.removed'
  /** Its subject. */
  readonly subject: {
    /** Public id of the key. */
    readonly key_id: string
    /** Its last four characters. */
    readonly hint: string
    /** The scope. */
    readonly scope:
      | 'read:partner-widget'
      | 'read:profiles'
      | 'read:banner'
      | 'read:countries'
      | 'read:industries'
      | 'read:plans'
      | 'create:partner-signups'
      | 'read:partner-reports'
  }
} | {
  /** Names the row. */
  readonly id: string
  /** When it happened. */
  readonly occurred_at: string
  /** What happened. */
  readonly type: 'module.activated' | 'module.deactivated'
  /** Its subject. */
  readonly subject: {
    /** The module. */
    readonly module:
      | 'widget'
      | 'profiles'
      | 'banner'
      | 'countries'
      | 'industries'
      | 'pricing'
      | 'signup'
      | 'reporting'
  }
}
