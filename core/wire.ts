/** Response bodies: routes return these types, schemas satisfy them, and the client re-exports them. */
import type { ProblemCode } from './http/problem.ts'
import type { EndpointMethod, Environment, Module, PolicyName, Scope } from './model.ts'
import type { ActivityType } from './ports/reports.ts'

/** Something with a slug and a name. */
export interface Named {
  /** 1–80 of `a-z 0-9 -`, a letter or digit first. */
  readonly slug: string
  /** Display name. */
  readonly name: string
}

/** A profile in a list. */
export interface ProfileCard extends Named {
  /** One line of text. */
  readonly headline: string
  /** ISO 3166-1 alpha-2 code, or `XK`, and English name. */
  readonly country: { readonly code: string; readonly name: string }
  /** The industry of the profile. */
  readonly industry: Named
  /** URL of the logo. */
  readonly logo_url: string | null
  /** When the profile was published. */
  readonly published_at: string
  /** When it last changed. */
  readonly updated_at: string
}

/** A complete profile. */
export interface Profile extends ProfileCard {
  /** The long description. */
  readonly description: string | null
  /** URL of the website. */
  readonly website_url: string | null
  /** The city, as its directory names it. */
  readonly city: string | null
  /** Year of foundation. */
  readonly founded_year: number | null
  /** Number of employees. */
  readonly employees: { readonly min: number | null; readonly max: number | null } | null
  /** The tags, in the order of its directory. */
  readonly tags: readonly string[]
  /** Contact details. */
  readonly contact: { readonly email: string | null; readonly phone: string | null } | null
  /** Further links. */
  readonly links: readonly { readonly rel: string; readonly url: string }[]
}

/** The banner of a partner. */
export interface Banner {
  /** Headline. */
  readonly title: string
  /** Text below the headline. */
  readonly body: string | null
  /** URL of the image. */
  readonly image_url: string | null
  /** Text for the `alt` attribute of the image. */
  readonly image_alt: string | null
  /** URL of the link. */
  readonly link_url: string | null
  /** Text of the link. */
  readonly link_label: string | null
  /** When the banner appears; `null` if it already does. */
  readonly starts_at: string | null
  /** When the banner disappears; `null` if it does not. */
  readonly ends_at: string | null
  /** When it last changed. */
  readonly updated_at: string
}

/** A country with its number of profiles. */
export interface Country {
  /** ISO 3166-1 alpha-2, or `XK`. */
  readonly code: string
  /** Name in the requested language. */
  readonly name: string
  /** Number of profiles that the partner can see. */
  readonly profile_count: number
}

/** An industry with its number of profiles. */
export interface Industry extends Named {
  /** Slug of the parent industry. */
  readonly parent_slug: string | null
  /** Number of profiles that the partner can see, without those of sub-industries. */
  readonly profile_count: number
}

/** A pricing plan. */
export interface Plan extends Named {
  /** Description. */
  readonly description: string
  /** Price. */
  readonly price: Money
  /** Billing interval. */
  readonly interval: 'month' | 'year' | 'once'
  /** Features in display order. */
  readonly features: readonly string[]
  /** Whether to highlight the plan. */
  readonly highlighted: boolean
  /** Sort position; plans without one come last. */
  readonly position: number | null
}

/** An amount of money. */
export interface Money {
  /** Amount in the minor unit of the currency. */
  readonly amount_minor: number
  /** ISO 4217 code. */
  readonly currency: string
  /** Decimal digits of the minor unit: 2 for EUR, 0 for JPY, 3 for KWD. */
  readonly exponent: number
}

/** The data of a widget. */
export interface Widget {
  /** The partner that owns the key. */
  readonly partner: Named
  /** The current banner. */
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

/** The successor of a key. */
export interface KeyRotation {
  /** Public id of the key. */
  readonly id: string
  /** The whole key, a secret. It is not shown again. */
  readonly key: string
  /** The last four characters of the key. */
  readonly hint: string
  /** The environment of its predecessor. */
  readonly environment: Environment
  /** The scopes of its predecessor. */
  readonly scopes: readonly Scope[]
  /** When it expires, like its predecessor. */
  readonly expires_at: string | null
  /** The old key, and until when it works. */
  readonly predecessor: { readonly id: string; readonly ends_at: string }
}

/** The key of a one-time link. */
export type ClaimedKey = Omit<KeyRotation, 'predecessor'> & Pick<ClaimOffer, 'predecessor'>

/** What a one-time link is for until `expires_at`: the key `name` of `partner`. */
export type ClaimOffer = Readonly<
  { partner: string; name: string; expires_at: string; predecessor: KeyRotation['predecessor'] | null }
>

/** A revoked key. */
export interface KeyRevocation {
  /** Public id of the key. */
  readonly id: string
  /** The state, which is final. */
  readonly state: 'revoked'
  /** When it was revoked. */
  readonly revoked_at: string
}

/** Confirmation of a signup. */
export interface SignupReceipt {
  /** Id of the signup. */
  readonly id: string
  /** The signup is stored. */
  readonly status: 'received'
  /** When the signup was received. */
  readonly created_at: string
}

/** Numbers of requests with live keys. */
export interface RequestCounts {
  /** Number of requests. */
  readonly requests: number
  /** Number of responses with status 400 or above. */
  readonly errors: number
}

/** Signups and requests of a period. */
export interface ReportSummary {
  /** First and last day, `YYYY-MM-DD` in UTC. */
  readonly period: { readonly from: string; readonly to: string }
  /** Signups with live keys, largest counts first. */
  readonly signups: {
    readonly total: number
    /** The signups of each plan, by slug; `null` for signups without one. */
    readonly by_plan: readonly { readonly plan: string | null; readonly signups: number }[]
    /** The signups of each country, by ISO 3166-1 alpha-2 code or `XK`; `null` for signups without one. */
    readonly by_country: readonly { readonly country: string | null; readonly signups: number }[]
  }
  /** Requests with live keys, largest counts first. */
  readonly requests: {
    readonly total: number
    /** Number of responses with status 400 or above. */
    readonly errors: number
    /** The requests of each endpoint; its path has `{slug}` for a parameter. */
    readonly by_endpoint: readonly (
      & { readonly method: EndpointMethod; readonly path: string }
      & RequestCounts
    )[]
  }
  /** A row for every day of the period, `YYYY-MM-DD` in UTC. */
  readonly daily: readonly ({ readonly date: string; readonly signups: number } & RequestCounts)[]
}

/** A signup with masked personal data. */
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

/** A key. */
export interface KeySubject {
  /** Public id of the key. */
  readonly key_id: string
  /** Last four characters of the key. */
  readonly hint: string
}

/** The subject of each type of activity. */
export type ActivitySubject<Type extends ActivityType> = Type extends 'signup.created' ? SignupSubject
  : Type extends `module.${string}` ? { readonly module: Module }
  : Type extends `scope.${string}` ? KeySubject & { readonly scope: Scope }
  : KeySubject

/** An activity, discriminated by `type`. Contains no personal data. */
export type Activity = {
  readonly [Type in ActivityType]: {
    readonly id: string
    readonly occurred_at: string
    readonly type: Type
    readonly subject: ActivitySubject<Type>
  }
}[ActivityType]

/** A key and its permissions. */
export interface Verification {
  /** An invalid key gets a problem instead. */
  readonly valid: true
  /** The partner that owns the key. */
  readonly partner: Named
  /** The key, without its secret. */
  readonly key: Key
  /** The scopes that the key holds. */
  readonly scopes: readonly {
    readonly scope: Scope
    /** Whether an active module of the partner needs the scope. */
    readonly in_force: boolean
  }[]
  /** All modules. */
  readonly modules: readonly ({
    readonly module: Module
    readonly active: boolean
    /** Whether the module works with this key. */
    readonly ready: boolean
    readonly missing_scope: Scope | null
  })[]
  /** Every endpoint that needs a scope. */
  readonly endpoints: readonly ({
    readonly method: EndpointMethod
    /** Path with `{slug}` for a parameter. */
    readonly path: string
    readonly scope: Scope
    /** Whether this key may use the endpoint now. */
    readonly allowed: boolean
  })[]
  /** The active rate limit policies. */
  readonly limits: readonly ({
    readonly policy: PolicyName
    readonly quota: number
    readonly window_seconds: number
    readonly remaining: number
    readonly resets_in_seconds: number
  })[]
  /** API version. */
  readonly version: string
  /** When this was checked. */
  readonly checked_at: string
  /** Milliseconds within which changes take effect. */
  readonly max_staleness_ms: number
  /** Present if the operator lets cached keys work while the store is unavailable: changes may take effect later. */
  readonly stale_if_error?: {
    readonly seconds: number
    /** When the store became unavailable; `null` if it is available. */
    readonly since: string | null
  } | undefined
}

/** A key without its secret. */
export interface Key {
  /** Public id of the key: the 12 characters after its prefix. */
  readonly id: string
  /** Name of the key. */
  readonly name: string
  /** Signups with a test key are stored as tests. */
  readonly environment: 'live' | 'test'
  /** Last four characters of the key. */
  readonly hint: string
  /** When the key was issued. */
  readonly created_at: string
  /** When the key expires. */
  readonly expires_at: string | null
  /** Present while the key is being replaced. */
  readonly rotation: {
    readonly successor_id: string
    /** Until when this key still works. */
    readonly retires_at: string
  } | null
}

/** A request that was answered with a problem. */
export interface ProblemRecord
  extends KeySubject, Pick<Problem, 'status' | 'code' | 'detail' | 'required_scope' | 'required_module'> {
  /** When the request was checked. */
  readonly at: string
  /** HTTP method. */
  readonly method: string
  /** Path of the request, without its query. */
  readonly path: string
  /** `X-Request-Id` of the response. */
  readonly request_id: string
}

/** A problem (RFC 9457). Handle it by `code`; show `detail` to developers. */
export interface Problem {
  /** Identifies the code. */
  readonly type: string
  /** A short title, the same for every problem with this code. */
  readonly title: string
  /** Status of the response. */
  readonly status: number
  /** Identifies the problem. Codes are never renamed. */
  readonly code: ProblemCode
  /** Explains this occurrence. */
  readonly detail: string
  /** The path of the request. */
  readonly instance: string
  /** `X-Request-Id` of the response. */
  readonly request_id: string
  /** The scope that the key lacks. */
  readonly required_scope?: Scope | undefined
  /** The module to activate. */
  readonly required_module?: Module | undefined
  /** All errors in the parameters or the body. */
  readonly errors?:
    | readonly ({
      /** Name of the parameter or header. */
      readonly parameter?: string | undefined
      /** Location in the body (RFC 6901). */
      readonly pointer?: string | undefined
      readonly detail: string
    })[]
    | undefined
}
