/**
 * What the service talks about: partners, keys and public content, as plain values.
 * Instants are milliseconds since the Unix epoch; the wire's RFC 3339 text is made where an answer is.
 */
import type { Module } from './policy/modules.ts'
import type { Scope } from './policy/scopes.ts'

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
  readonly slug: string
  readonly name: string
  readonly state: 'active' | 'suspended' | 'removed'
  readonly modules: readonly Module[]
  readonly limits: LimitOverrides
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
  readonly name: string
  readonly environment: Environment
  /** SHA-256 of the whole key, 64 lower-case hexadecimal digits. */
  readonly digest: string
  /** Last four characters of the key. */
  readonly hint: string
  /** What was decided about the key; that it is expired or retiring follows from the instants below. */
  readonly state: 'active' | 'disabled' | 'revoked'
  readonly scopes: readonly Scope[]
  /** Address ranges in CIDR notation from which the key may be used; empty means from anywhere. */
  readonly allow: readonly string[]
  readonly limits: LimitOverrides
  readonly createdAt: number
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
  readonly key: Key
  readonly partner: Partner
}

/** What a list shows of a profile. */
export interface ProfileCard {
  readonly slug: string
  readonly name: string
  readonly headline: string
  /** ISO 3166-1 alpha-2, upper case, or `XK`. */
  readonly country: string
  readonly industry: { readonly slug: string; readonly name: string }
  readonly logoUrl: string | undefined
  readonly publishedAt: number
  readonly updatedAt: number
}

/** All that is public of a profile. */
export interface Profile extends ProfileCard {
  readonly description: string | undefined
  readonly websiteUrl: string | undefined
  readonly city: string | undefined
  readonly foundedYear: number | undefined
  readonly employees: { readonly min: number | undefined; readonly max: number | undefined } | undefined
  readonly tags: readonly string[]
  readonly contact: { readonly email: string | undefined; readonly phone: string | undefined } | undefined
  readonly links: readonly { readonly rel: string; readonly url: string }[]
}

/** A branch of industry that profiles belong to. */
export interface Industry {
  readonly slug: string
  readonly name: string
  readonly parentSlug: string | undefined
}

/** A pricing plan. */
export interface Plan {
  readonly slug: string
  readonly name: string
  readonly description: string
  /** An amount in the minor unit of an ISO 4217 currency. */
  readonly price: { readonly amountMinor: number; readonly currency: string }
  readonly interval: 'month' | 'year' | 'once'
  readonly features: readonly string[]
  readonly highlighted: boolean
  readonly position: number | undefined
}

/** A partner's banner. It shows from `startsAt` (inclusive) to `endsAt` (exclusive). */
export interface Banner {
  readonly partner: string
  readonly title: string
  readonly body: string | undefined
  readonly imageUrl: string | undefined
  readonly imageAlt: string | undefined
  readonly linkUrl: string | undefined
  readonly linkLabel: string | undefined
  readonly startsAt: number | undefined
  readonly endsAt: number | undefined
  readonly updatedAt: number
}
