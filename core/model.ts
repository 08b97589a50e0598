import type { Module, Scope } from './policy/modules.ts'

/** What an endpoint is called by counters, documents and logs: never changes. */
export type EndpointName =
  | 'verify-key'
  | 'widget'
  | 'recent-profiles'
  | 'profiles'
  | 'profile'
  | 'banner'
  | 'countries'
  | 'industries'
  | 'plans'
  | 'report-summary'
  | 'report-activity'
  | 'sign-up'
  | 'health'
  | 'openapi'
  | 'docs'
  | 'api-catalog'

/**
 * What the service talks about: partners, keys and public content, as plain values.
 * Instants are milliseconds since the Unix epoch; the wire's RFC 3339 text is made where an answer is.
 */

/** The rate limit policies of the service. */
export type LimitName = 'key' | 'signup' | 'verify' | 'authfail'

/** A quota of requests in a window. */
export interface Limit {
  /** Requests, 0 or more; 0 turns the policy off. */
  readonly quota: number
  /** Seconds, 1 or more. */
  readonly windowSeconds: number
}

/** The policies that a partner or a key may carry numbers of its own for. */
export type OverridableLimit = Exclude<LimitName, 'authfail'>

/** The numbers that a partner or a key carries itself. */
export type LimitOverrides = Readonly<Partial<Record<OverridableLimit, Limit>>>

/** A tenant. `removed` is terminal: its records stay and its slug stays taken. */
export interface Partner {
  /** What it is addressed by: 1–80 of `a-z 0-9 -`, a letter or digit first; never given to another. */
  readonly slug: string
  /** Name to show: 1–200 code points. */
  readonly name: string
  /** `suspended` refuses all of its requests until it is resumed; `removed` is for good. */
  readonly state: 'active' | 'suspended' | 'removed'
  /** The modules that are active, each once, in the order of the contract. */
  readonly modules: readonly Module[]
  /** Its own numbers, which count for each of its keys that has none. */
  readonly limits: LimitOverrides
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/** A `live` key counts in reports; what a `test` key does is stored as a test. */
export type Environment = 'live' | 'test'

/** A key as it is at rest: never the secret, only the digest of the whole key. */
export interface Key {
  /** 12 base62 characters, public. */
  readonly id: string
  /** Slug of the partner that owns the key. */
  readonly partner: string
  /** What its owner calls it: 1–200 code points. */
  readonly name: string
  /** Never changes: the text of the key says it too. */
  readonly environment: Environment
  /** SHA-256 of the whole key, 64 lower-case hexadecimal digits. */
  readonly digest: string
  /** Last four characters of the key. */
  readonly hint: string
  /**
   * What was decided about the key; that it is expired or retiring follows from the instants below. `retired`: it was
   * replaced without an overlap, and has ended whatever any clock says.
   */
  readonly state: 'active' | 'disabled' | 'retired' | 'revoked'
  /** What it may ask for while an active module of its partner needs it; each once, in the specification's order. */
  readonly scopes: readonly Scope[]
  /** Address ranges in CIDR notation from which the key may be used; empty means from anywhere. */
  readonly allow: readonly string[]
  /** Its own numbers, in the place of its partner's. */
  readonly limits: LimitOverrides
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** From this instant on it is refused, milliseconds since the epoch; `undefined`: never. */
  readonly expiresAt: number | undefined
  /** The end of the overlap when the key was rotated. */
  readonly retiresAt: number | undefined
  /** The key that replaces this one when it was rotated. */
  readonly successorId: string | undefined
  /** An instant of use, coarse: noted at most once a minute, so later uses may have followed. Undefined until the first. */
  readonly lastUsedAt: number | undefined
}

/** All that is known about a key when a request carries it. */
export interface KeyFacts {
  /** The key. */
  readonly key: Key
  /** The partner that owns it. */
  readonly partner: Partner
}

/** What a list shows of a profile. */
export interface ProfileCard {
  /** What it is addressed by: 1–80 of `a-z 0-9 -`, a letter or digit first. */
  readonly slug: string
  /** Name to show: 1–200 code points. */
  readonly name: string
  /** One line about it: 1–300 code points. */
  readonly headline: string
  /** ISO 3166-1 alpha-2, upper case, or `XK`. */
  readonly country: string
  /** The industry that it belongs to, and the name of that. */
  readonly industry: { readonly slug: string; readonly name: string }
  /** Absolute `http` or `https` URL, at most 2,048 code points. */
  readonly logoUrl: string | undefined
  /** From when on it is public, milliseconds since the epoch. */
  readonly publishedAt: number
  /** When anything of it changed last, milliseconds since the epoch. */
  readonly updatedAt: number
}

/** All that is public of a profile. */
export interface Profile extends ProfileCard {
  /** 1–5,000 code points. */
  readonly description: string | undefined
  /** Absolute `http` or `https` URL, at most 2,048 code points. */
  readonly websiteUrl: string | undefined
  /** 1–200 code points. */
  readonly city: string | undefined
  /** 1–9999. */
  readonly foundedYear: number | undefined
  /** How many people work there: integers from 0, `max` not below `min`. */
  readonly employees: { readonly min: number | undefined; readonly max: number | undefined } | undefined
  /** Up to 20 words for it, 1–50 code points each. */
  readonly tags: readonly string[]
  /** How to reach it: an e-mail address, a telephone number of 1–50 code points, or both. */
  readonly contact: { readonly email: string | undefined; readonly phone: string | undefined } | undefined
  /** Up to 20 more addresses: what each is for, 1–50 code points, and an absolute `http` or `https` URL. */
  readonly links: readonly { readonly rel: string; readonly url: string }[]
}

/** A branch of industry that profiles belong to. */
export interface Industry {
  /** What it is addressed by: 1–80 of `a-z 0-9 -`, a letter or digit first. */
  readonly slug: string
  /** Name to show: 1–200 code points. */
  readonly name: string
  /** The industry that it is a part of; never itself, and in no circle. */
  readonly parentSlug: string | undefined
}

/** A pricing plan. */
export interface Plan {
  /** What it is addressed by: 1–80 of `a-z 0-9 -`, a letter or digit first. */
  readonly slug: string
  /** Name to show: 1–200 code points. */
  readonly name: string
  /** What it is for: 1–5,000 code points. */
  readonly description: string
  /** An amount in the minor unit of an ISO 4217 currency. */
  readonly price: { readonly amountMinor: number; readonly currency: string }
  /** How often the price is due. */
  readonly interval: 'month' | 'year' | 'once'
  /** Up to 50 things that it has, in order, 1–200 code points each. */
  readonly features: readonly string[]
  /** Whether it is the one to point at. */
  readonly highlighted: boolean
  /** Its place among the plans, any integer; those without one come last. */
  readonly position: number | undefined
}

/** A partner's banner. It shows from `startsAt` (inclusive) to `endsAt` (exclusive). */
export interface Banner {
  /** Slug of the partner whose it is. */
  readonly partner: string
  /** 1–200 code points. */
  readonly title: string
  /** 1–5,000 code points. */
  readonly body: string | undefined
  /** Absolute `http` or `https` URL, at most 2,048 code points. */
  readonly imageUrl: string | undefined
  /** The picture in words: 1–500 code points. */
  readonly imageAlt: string | undefined
  /** Absolute `http` or `https` URL, at most 2,048 code points. */
  readonly linkUrl: string | undefined
  /** What the link says: 1–200 code points. */
  readonly linkLabel: string | undefined
  /** Milliseconds since the epoch; `undefined`: it shows already. */
  readonly startsAt: number | undefined
  /** Milliseconds since the epoch, after `startsAt`; `undefined`: it goes on. */
  readonly endsAt: number | undefined
  /** When any of it changed last, milliseconds since the epoch. */
  readonly updatedAt: number
}
