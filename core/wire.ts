/** The bodies of requests and responses on the wire. Routes return them, schemas are held to them, the client exports them. */
import type { ProblemCode } from './http/problem.ts'
import type { LimitName } from './model.ts'
import type { Module, Scope } from './policy/modules.ts'
import type { ActivityType } from './ports/reports.ts'

/** What is addressed by a slug and shown by a name. */
export interface Named {
  /** 1–80 of `a-z 0-9 -`, a letter or digit first. */
  readonly slug: string
  /** Name to show. */
  readonly name: string
}

/** A profile as lists show it. */
export interface ProfileCard extends Named {
  /** One line about it. */
  readonly headline: string
  /** The country that it is in. */
  readonly country: {
    /** ISO 3166-1 alpha-2, or `XK`. */
    readonly code: string
    /** English name. */
    readonly name: string
  }
  /** The industry that it belongs to. */
  readonly industry: Named
  /** Where its logo is. */
  readonly logo_url: string | null
  /** When it became public. */
  readonly published_at: string
  /** When any of it changed last. */
  readonly updated_at: string
}

/** All that is public of a profile. */
export interface Profile extends ProfileCard {
  /** What it says of itself. */
  readonly description: string | null
  /** Its website. */
  readonly website_url: string | null
  /** The place that it is in. */
  readonly city: string | null
  /** The year that it began in. */
  readonly founded_year: number | null
  /** How many people work there. */
  readonly employees: {
    /** At least so many. */
    readonly min: number | null
    /** At most so many. */
    readonly max: number | null
  } | null
  /** Words for it. */
  readonly tags: readonly string[]
  /** How to reach it. */
  readonly contact: {
    /** Address for mail. */
    readonly email: string | null
    /** Number to call. */
    readonly phone: string | null
  } | null
  /** More of it elsewhere. */
  readonly links: readonly ({
    /** What the link is for. */
    readonly rel: string
    /** Where it leads. */
    readonly url: string
  })[]
}

/** The banner of a partner. */
export interface Banner {
  /** What it says. */
  readonly title: string
  /** What it says below that. */
  readonly body: string | null
  /** Its picture. */
  readonly image_url: string | null
  /** The picture in words: goes into `alt`. */
  readonly image_alt: string | null
  /** Where it leads. */
  readonly link_url: string | null
  /** What the link says. */
  readonly link_label: string | null
  /** First instant at which it shows. */
  readonly starts_at: string | null
  /** Instant from which it shows no more. */
  readonly ends_at: string | null
  /** When any of it changed last. */
  readonly updated_at: string
}

/** A country with the profiles that the partner can see in it. */
export interface Country {
  /** ISO 3166-1 alpha-2, or `XK`. */
  readonly code: string
  /** Name in the language asked for. */
  readonly name: string
  /** How many profiles the partner can see there. */
  readonly profile_count: number
}

/** An industry with the profiles that the partner can see in it. */
export interface Industry extends Named {
  /** The industry that this one is a part of. */
  readonly parent_slug: string | null
  /** How many profiles are in it, those in its parts not counted. */
  readonly profile_count: number
}

/** A pricing plan. */
export interface Plan extends Named {
  /** What it is for. */
  readonly description: string
  /** Its price. */
  readonly price: Money
  /** How often the price is due. */
  readonly interval: 'month' | 'year' | 'once'
  /** What it has, in order. */
  readonly features: readonly string[]
  /** Whether it is the one to point at. */
  readonly highlighted: boolean
  /** Its place; plans without one come last. */
  readonly position: number | null
}

/** An amount of money, in integers only. */
export interface Money {
  /** Amount in the minor unit of the currency. */
  readonly amount_minor: number
  /** ISO 4217. */
  readonly currency: string
  /** Digits of the minor unit: 2 for EUR, 0 for JPY, 3 for KWD. */
  readonly exponent: number
}

/** Enough to draw a widget. */
export interface Widget {
  /** The partner that the key belongs to. */
  readonly partner: Named
  /** The banner that shows now. */
  readonly banner: Banner | null
  /** The newest profiles. */
  readonly profiles: readonly ProfileCard[]
  /** Countries in use. */
  readonly countries: readonly Country[]
  /** Industries in use. */
  readonly industries: readonly Industry[]
  /** All plans, in order. */
  readonly plans: readonly Plan[]
}

/** That a signup was received. */
export interface SignupReceipt {
  /** Names the signup. */
  readonly id: string
  /** The service has it. */
  readonly status: 'received'
  /** When it was received. */
  readonly created_at: string
}

/** Requests of live keys, counted. */
export interface RequestCounts {
  /** How many there were. */
  readonly requests: number
  /** Those of them that were answered with 400 or above. */
  readonly errors: number
}

/** What a period held, counted. */
export interface ReportSummary {
  /** First and last day, `YYYY-MM-DD` in UTC. */
  readonly period: { readonly from: string; readonly to: string }
  /** Signups of live keys; the largest counts first. */
  readonly signups: {
    /** All of them. */
    readonly total: number
    /** By slug of the plan, `null` for those without one. */
    readonly by_plan: readonly { readonly plan: string | null; readonly signups: number }[]
    /** By ISO 3166-1 alpha-2 code or `XK`, `null` for those without one. */
    readonly by_country: readonly { readonly country: string | null; readonly signups: number }[]
  }
  /** Requests of live keys; the largest counts first. */
  readonly requests: {
    /** All of them. */
    readonly total: number
    /** Those of them that were answered with 400 or above. */
    readonly errors: number
    /** By endpoint, its path with `{slug}` for a parameter. */
    readonly by_endpoint: readonly (
      & { readonly method: 'GET' | 'POST'; readonly path: string }
      & RequestCounts
    )[]
  }
  /** A row for every day of the period, `YYYY-MM-DD` in UTC. */
  readonly daily: readonly ({ readonly date: string; readonly signups: number } & RequestCounts)[]
}

/** A signup as activity shows it: masked, initials only. */
export interface SignupSubject {
  /** Id of the signup. */
  readonly signup_id: string
  /** Masked: `j***@e***.com`. */
  readonly email: string
  /** Initials: `J. D.`. */
  readonly name: string
  /** ISO 3166-1 alpha-2, or `XK`. */
  readonly country: string | null
  /** Slug of the plan. */
  readonly plan: string | null
}

/** A key as activity shows it. */
export interface KeySubject {
  /** Its public id. */
  readonly key_id: string
  /** Its last four characters. */
  readonly hint: string
}

/** What an activity of a type is about. */
export type ActivitySubject<Type extends ActivityType> = Type extends 'signup.created' ? SignupSubject
  : Type extends `module.${string}` ? { readonly module: Module }
  : Type extends `scope.${string}` ? KeySubject & { readonly scope: Scope }
  : KeySubject

/** Something that happened, by `type`. Nothing personal stands in it. */
export type Activity = {
  readonly [Type in ActivityType]: {
    /** Names the row. */
    readonly id: string
    /** When it happened. */
    readonly occurred_at: string
    /** What happened. */
    readonly type: Type
    /** What it happened to. */
    readonly subject: ActivitySubject<Type>
  }
}[ActivityType]

/** What a key is and what it may do. */
export interface Verification {
  /** A key that is not valid gets a problem instead. */
  readonly valid: true
  /** The partner that the key belongs to. */
  readonly partner: Named
  /** The key, without its secret. */
  readonly key: Key
  /** The scopes that the key holds. */
  readonly scopes: readonly ({
    /** A scope that the key holds. */
    readonly scope: Scope
    /** Whether an active module of the partner needs it. */
    readonly in_force: boolean
  })[]
  /** All modules. */
  readonly modules: readonly ({
    /** An integration module. */
    readonly module: Module
    /** Whether the partner has activated it. */
    readonly active: boolean
    /** Whether this key can serve it. */
    readonly ready: boolean
    /** The scope that the key would need. */
    readonly missing_scope: Scope | null
  })[]
  /** Every endpoint that needs a scope. */
  readonly endpoints: readonly ({
    /** HTTP method. */
    readonly method: 'GET' | 'POST'
    /** Path with `{slug}` for a parameter. */
    readonly path: string
    /** The scope that it needs. */
    readonly scope: Scope
    /** Whether this key may use it now. */
    readonly allowed: boolean
  })[]
  /** The policies that are on. */
  readonly limits: readonly ({
    /** Name of the policy. */
    readonly policy: LimitName
    /** Requests in a window. */
    readonly quota: number
    /** Length of the window. */
    readonly window_seconds: number
    /** Requests that are left. */
    readonly remaining: number
    /** When the quota is whole again. */
    readonly resets_in_seconds: number
  })[]
  /** Version of the wire. */
  readonly version: string
  /** The instant that all of this is true of. */
  readonly checked_at: string
  /** Within how many milliseconds a change binds. */
  readonly max_staleness_ms: number
  /** Only where the operator has chosen that known keys go on working for a while when the store is out of reach: a change may then bind later. */
  readonly stale_if_error?: {
    /** For how long beyond that. */
    readonly seconds: number
    /** Since when the store has not answered. */
    readonly since: string | null
  } | undefined
}

/** A key without its secret. */
export interface Key {
  /** Public id of the key: the 12 characters after its prefix. */
  readonly id: string
  /** What its owner calls it. */
  readonly name: string
  /** What a test key does is stored as a test. */
  readonly environment: 'live' | 'test'
  /** Its last four characters. */
  readonly hint: string
  /** When it was issued. */
  readonly created_at: string
  /** From when on it is no longer valid. */
  readonly expires_at: string | null
  /** Set while the key is being replaced. */
  readonly rotation: {
    /** Id of the key that replaces it. */
    readonly successor_id: string
    /** Until when this one still works. */
    readonly retires_at: string
  } | null
}

/** What went wrong (RFC 9457). Decide by `code`; show `detail` to developers. */
export interface Problem {
  /** Names the code. */
  readonly type: string
  /** The same for every problem of one code. */
  readonly title: string
  /** The status of the answer. */
  readonly status: number
  /** What went wrong. Codes are never renamed. */
  readonly code: ProblemCode
  /** What went wrong this time. */
  readonly detail: string
  /** Where: the path. */
  readonly instance: string
  /** The same as `X-Request-Id`. */
  readonly request_id: string
  /** The scope that is missing. */
  readonly required_scope?: Scope | undefined
  /** The module to activate. */
  readonly required_module?: Module | undefined
  /** Everything that is wrong with parameters or body, at once. */
  readonly errors?:
    | readonly ({
      /** Name of the parameter or field. */
      readonly parameter?: string | undefined
      /** Place in the body (RFC 6901). */
      readonly pointer?: string | undefined
      /** What is wrong with it. */
      readonly detail: string
    })[]
    | undefined
}
