/**
 * Every integration module in the contract's order: the scope that it needs, and the feature that it switches on. A
 * scope of a key is in force only while an active module of its partner needs it.
 */
export const MODULES = {
  widget: { scope: 'read:partner-widget', feature: 'Combined widget' },
  profiles: { scope: 'read:profiles', feature: 'Recent profiles, directory and profile details' },
  banner: { scope: 'read:banner', feature: 'Banner embeds' },
  countries: { scope: 'read:countries', feature: 'Country filters' },
  industries: { scope: 'read:industries', feature: 'Industries and filters' },
  pricing: { scope: 'read:plans', feature: 'Pricing' },
  signup: { scope: 'create:partner-signups', feature: 'Signup forms' },
  reporting: { scope: 'read:partner-reports', feature: 'Partner reporting' },
} as const

/** The eight modules by name, in the contract's order. */
export const MODULE_NAMES: readonly BuiltInModule[] = Object.keys(MODULES) as BuiltInModule[]

/** The scopes of the eight modules, in the same order. */
export const SCOPES: readonly BuiltInScope[] = MODULE_NAMES.map((module) => MODULES[module].scope)

/** The name of one of the eight modules. */
export type BuiltInModule = keyof typeof MODULES

/** The scope of one of the eight modules. */
export type BuiltInScope = (typeof MODULES)[BuiltInModule]['scope']

/** The name of an integration module: one of the eight, or one that the operator has defined. */
export type Module = BuiltInModule | (string & Record<never, never>)

/** One permission of a key. */
export type Scope = BuiltInScope | (string & Record<never, never>)

/** A scope in the definition of an endpoint: `VERB:NAME`. */
export type EndpointScope =
  | BuiltInScope
  | `${'read' | 'create' | 'update' | 'delete'}:${string & Record<never, never>}`

/** A method of an endpoint. Built-in ones and those of `defineEndpoint` have `GET` or `POST`; `protect` takes each. */
export type EndpointMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** All methods of endpoints. */
export const ENDPOINT_METHODS: readonly EndpointMethod[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Whether requests with this method name their partner in a body, and not in the query. */
export function takesBody(method: string): boolean {
  return method === 'POST' || method === 'PUT' || method === 'PATCH'
}

/** Modules that an operator can define. */
export const MAX_OWN_MODULES = 24

/** The only version so far. Additions do not make a new one. */
export const API_VERSION = '2026-11-20'

/** The name of a module that an operator defines. */
export const MODULE_PATTERN = /^[a-z][a-z0-9-]{0,39}$/
/** The scope of a module that an operator defines. */
export const SCOPE_PATTERN = /^(?:read|create|update|delete):[a-z][a-z0-9-]{0,39}$/

/** An integration module that the operator has defined. */
export interface ModuleDefinition {
  /** 1–40 of `a-z 0-9 -`, a letter first; none of the eight. */
  readonly name: Module
  /**
   * `VERB:NAME`, the verb `read`, `create`, `update` or `delete` and the name as that of a module. Of no other module.
   */
  readonly scope: Scope
  /** What it switches on: 1–200 code points. */
  readonly feature: string
}

/** All modules of a store: the eight, then those that its operator has defined, in the order of definition. */
export interface Modules {
  /** The modules, each with its scope and feature. */
  readonly list: readonly ModuleDefinition[]
  /** The names of the modules. */
  readonly names: readonly Module[]
  /** The scopes of the modules. */
  readonly scopes: readonly Scope[]
  /** The scope that a module needs; `undefined` if there is no module of this name. */
  scopeOf(module: Module): Scope | undefined
  /** The module that needs a scope; `undefined` if no module does. */
  moduleFor(scope: Scope): Module | undefined
}

/** All modules of a store. @param own In the order of definition. */
export function modulesWith(own: readonly ModuleDefinition[]): Modules {
  const list = [...MODULE_NAMES.map((name) => ({ name, ...MODULES[name] })), ...own]
  const names = list.map(({ name }) => name)
  const scopes = list.map(({ scope }) => scope)
  const scopeOf = new Map(list.map(({ name, scope }) => [name, scope]))
  const moduleFor = new Map(list.map(({ name, scope }) => [scope, name]))
  return {
    list,
    names,
    scopes,
    scopeOf: (module) => scopeOf.get(module),
    moduleFor: (scope) => moduleFor.get(scope),
  }
}

/** The modules of a store for which none were defined. */
export const BUILT_IN_MODULES: Modules = modulesWith([])

/** Names in the order of the contract, each once; others after them, by code points. */
export function inContractOrder<Name extends string>(first: readonly Name[], held: Iterable<Name>): Name[] {
  const rest = new Set(held)
  return [...first.filter((name) => rest.delete(name)), ...[...rest].sort()]
}

/** Names of endpoints in usage counts, documents and logs; they never change. */
export type EndpointName =
  | 'verify-key'
  | 'problems'
  | 'rotate-key'
  | 'revoke-key'
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
  | 'docs-markdown'
  | 'endpoint-markdown'
  | 'api-catalog'
  | 'show-claim'
  | 'use-claim'

/** The name of a rate limit policy. */
export type PolicyName = ServicePolicyName | PartnerQuotaName

/** The name of a policy whose limit a service sets. */
export type ServicePolicyName = 'key' | 'signup' | 'verify' | 'rotate' | 'authfail'

/** The name of a quota that only a partner has, and its live keys share: of a window, or of a calendar month in UTC. */
export type PartnerQuotaName = 'partner' | 'month'

/** A quota of requests in a window. */
export interface Limit {
  /** Requests, 0 or more; 0 turns the policy off. */
  readonly quota: number
  /** Seconds, 1 or more. */
  readonly windowSeconds: number
}

/** A quota of requests in each calendar month. */
export interface MonthLimit {
  /** Requests, 0 or more; 0 turns the policy off. */
  readonly quota: number
  /** A month has no other length. */
  readonly windowSeconds?: undefined
}

/** The name of a policy whose limit a key may override. */
export type KeyPolicyName = Exclude<ServicePolicyName, 'rotate' | 'authfail'>

/** The name of a policy whose limit a partner may override. */
export type PartnerPolicyName = KeyPolicyName | 'rotate' | PartnerQuotaName

/** The limits of a partner or a key itself. */
export type LimitOverrides = Readonly<
  Partial<Record<Exclude<PartnerPolicyName, 'month'>, Limit> & { readonly month: MonthLimit }>
>

/** What a partner may be allowed to do with its keys itself. */
export const SELF_SERVICE: readonly SelfService[] = ['rotate', 'revoke']

/** A kind of change that a partner may make to its own keys. */
export type SelfService = 'rotate' | 'revoke'

/** The most tags of a partner or a key. */
export const MAX_TAGS = 20

/** The form of a tag. */
export const TAG_PATTERN = /^[a-z0-9][a-z0-9._-]{0,39}$/

/** What operators note about a partner. */
export interface PartnerDetails {
  /** An e-mail address, at most 254 characters: personal data, which the audit log leaves out. */
  readonly contact: string | undefined
  /** Up to 20 tags of 1–40 `a-z 0-9 - _ .`, a letter or digit first; sorted. */
  readonly tags: readonly string[]
  /** The partner's id in another system: 1–200 code points. */
  readonly externalId: string | undefined
  /** 1–1,000 code points. The audit log and events leave it out. */
  readonly note: string | undefined
  /** What it may do itself; nothing by default. */
  readonly selfService: readonly SelfService[]
}

/** What operators note about a key. */
export interface KeyDetails {
  /** Who is responsible for it: 1–200 code points. */
  readonly owner: string | undefined
  /** See `PartnerDetails.tags`. */
  readonly tags: readonly string[]
}

/** The details of a partner for which none were set. */
export const NO_PARTNER_DETAILS: PartnerDetails = {
  contact: undefined,
  tags: [],
  externalId: undefined,
  note: undefined,
  selfService: [],
}

/** The details of a key for which none were set. */
export const NO_KEY_DETAILS: KeyDetails = { owner: undefined, tags: [] }

/** A tenant. */
export interface Partner extends PartnerDetails {
  /** 1–80 of `a-z 0-9 -`, a letter or digit first; never reused. */
  readonly slug: string
  /** Display name: 1–200 code points. */
  readonly name: string
  /** `suspended` rejects all requests until resumed; `removed` is terminal and keeps the records. */
  readonly state: 'active' | 'suspended' | 'removed'
  /** The active modules, in the order of the contract. */
  readonly modules: readonly Module[]
  /** Limits for each of its keys without limits of its own. */
  readonly limits: LimitOverrides
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/** Reports count requests with `live` keys only; signups with `test` keys are stored as tests. */
export type Environment = 'live' | 'test'

/** A key at rest: never the secret, only the digest of the whole key. */
export interface Key extends KeyDetails {
  /** 12 base62 characters, public. */
  readonly id: string
  /** Slug of the partner that owns the key. */
  readonly partner: string
  /** 1–200 code points. */
  readonly name: string
  /** Part of the key's text; never changes. */
  readonly environment: Environment
  /**
   * SHA-256 of the whole key, 64 lower-case hexadecimal digits; of an imported key `SCHEME:DIGEST`, with the id of its
   * digest scheme.
   */
  readonly digest: string
  /** Last four characters of the key; of an imported key they may be unknown, and the hint empty. */
  readonly hint: string
  /**
   * The administrative state; whether the key is expired or retiring follows from the instants below. `retired`: it was
   * replaced, and its overlap was 0 or ended early. It is no longer valid, whatever the clocks say.
   */
  readonly state: 'active' | 'disabled' | 'retired' | 'revoked'
  /** The scopes, in the order of the specification. Each is in force while an active module of the partner needs it. */
  readonly scopes: readonly Scope[]
  /** Address ranges in CIDR notation from which the key may be used; empty allows any address. */
  readonly allow: readonly string[]
  /** Override the limits of the partner. */
  readonly limits: LimitOverrides
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** When the key expires, milliseconds since the epoch; `undefined`: never. */
  readonly expiresAt: number | undefined
  /** The end of the overlap when the key was rotated. */
  readonly retiresAt: number | undefined
  /** The key that this one has replaced, if it was made by a rotation. */
  readonly predecessorId: string | undefined
  /** The key that replaces this one when it was rotated. */
  readonly successorId: string | undefined
  /** Last use, recorded at most once a minute; `undefined` before the first. */
  readonly lastUsedAt: number | undefined
}

/** The states of a key as the contract names them: `Key.state` with what follows from the instants. */
export const KEY_STATES = ['active', 'retiring', 'disabled', 'expired', 'revoked'] as const

/** The state of a key at an instant. */
export type KeyState = (typeof KEY_STATES)[number]

/** A key with its partner. */
export interface KeyFacts {
  /** The key. */
  readonly key: Key
  /** The partner that owns it. */
  readonly partner: Partner
}

/** A profile in a list. */
export interface ProfileCard {
  /** 1–80 of `a-z 0-9 -`, a letter or digit first. */
  readonly slug: string
  /** Display name: 1–200 code points. */
  readonly name: string
  /** One line of text: 1–300 code points. */
  readonly headline: string
  /** ISO 3166-1 alpha-2, upper case, or `XK`. */
  readonly country: string
  /** The industry of the profile. */
  readonly industry: { readonly slug: string; readonly name: string }
  /** Absolute `http` or `https` URL, at most 2,048 code points. */
  readonly logoUrl: string | undefined
  /** When it becomes public, milliseconds since the epoch. */
  readonly publishedAt: number
  /** When it last changed, milliseconds since the epoch. */
  readonly updatedAt: number
}

/** A complete profile. */
export interface Profile extends ProfileCard {
  /** 1–5,000 code points. */
  readonly description: string | undefined
  /** Absolute `http` or `https` URL, at most 2,048 code points. */
  readonly websiteUrl: string | undefined
  /** 1–200 code points. */
  readonly city: string | undefined
  /** 1–9999. */
  readonly foundedYear: number | undefined
  /** Number of employees: integers from 0, `max` not below `min`. */
  readonly employees: { readonly min: number | undefined; readonly max: number | undefined } | undefined
  /** Up to 20 tags of 1–50 code points. */
  readonly tags: readonly string[]
  /** An e-mail address, a telephone number of 1–50 code points, or both. */
  readonly contact: { readonly email: string | undefined; readonly phone: string | undefined } | undefined
  /** Up to 20 links: purpose, 1–50 code points, and an absolute `http` or `https` URL. */
  readonly links: readonly { readonly rel: string; readonly url: string }[]
}

/** An industry. */
export interface Industry {
  /** 1–80 of `a-z 0-9 -`, a letter or digit first. */
  readonly slug: string
  /** Display name: 1–200 code points. */
  readonly name: string
  /** The parent industry; never forms a cycle. */
  readonly parentSlug: string | undefined
}

/** A pricing plan. */
export interface Plan {
  /** 1–80 of `a-z 0-9 -`, a letter or digit first. */
  readonly slug: string
  /** Display name: 1–200 code points. */
  readonly name: string
  /** 1–5,000 code points. */
  readonly description: string
  /** An amount in the minor unit of an ISO 4217 currency. */
  readonly price: { readonly amountMinor: number; readonly currency: string }
  /** Billing interval. */
  readonly interval: 'month' | 'year' | 'once'
  /** Up to 50 features in display order, 1–200 code points each. */
  readonly features: readonly string[]
  /** Whether to highlight the plan. */
  readonly highlighted: boolean
  /** Sort position, any integer; plans without one come last. */
  readonly position: number | undefined
}

/** A partner's banner, shown from `startsAt` (inclusive) to `endsAt` (exclusive). */
export interface Banner {
  /** Slug of the partner. */
  readonly partner: string
  /** 1–200 code points. */
  readonly title: string
  /** 1–5,000 code points. */
  readonly body: string | undefined
  /** Absolute `http` or `https` URL, at most 2,048 code points. */
  readonly imageUrl: string | undefined
  /** Alternative text of the image: 1–500 code points. */
  readonly imageAlt: string | undefined
  /** Absolute `http` or `https` URL, at most 2,048 code points. */
  readonly linkUrl: string | undefined
  /** Text of the link: 1–200 code points. */
  readonly linkLabel: string | undefined
  /** Milliseconds since the epoch; `undefined`: already shown. */
  readonly startsAt: number | undefined
  /** Milliseconds since the epoch, after `startsAt`; `undefined`: never ends. */
  readonly endsAt: number | undefined
  /** When it last changed, milliseconds since the epoch. */
  readonly updatedAt: number
}
