import {
  type Industry,
  type Key,
  NO_KEY_DETAILS,
  NO_PARTNER_DETAILS,
  type Partner,
  type Plan,
} from '../../../core/model.ts'
import type { AuditContext, Change } from '../../../core/ports/changes.ts'
import type {
  BannerRecord,
  ContentKind,
  ContentRecords,
  ImportOptions,
  ProfileRecord,
} from '../../../core/ports/content.ts'
import type { ProfileQuery } from '../../../core/ports/directory.ts'
import type { UsageCount } from '../../../core/ports/reports.ts'
import type { IdempotencyReservation, Signup } from '../../../core/ports/signups.ts'
import type { Store } from '../../../core/ports/store.ts'

/** An instant before every check. */
export const T0: number = Date.UTC(2026, 0, 1)

/** Milliseconds of a day. */
export const DAY = 86_400_000

/** The operator of every change, unless a check needs another. */
export const actor = 'grace'

export const stamp: AuditContext = { actor, at: T0 }

export function partner(more: Partial<Partner> = {}): Partner {
  return {
    slug: 'acme',
    name: 'Acme Travel',
    state: 'active',
    modules: [],
    limits: {},
    createdAt: T0,
    ...NO_PARTNER_DETAILS,
    ...more,
  }
}

export function key(more: Partial<Key> = {}): Key {
  return {
    id: 'Zt81Zt81Zt81',
    partner: 'acme',
    name: 'WordPress plugin',
    environment: 'live',
    digest: '0123456789abcdef'.repeat(4),
    hint: '9xQ2',
    state: 'active',
    scopes: [],
    allow: [],
    limits: {},
    createdAt: T0,
    expiresAt: undefined,
    retiresAt: undefined,
    predecessorId: undefined,
    successorId: undefined,
    lastUsedAt: undefined,
    ...NO_KEY_DETAILS,
    ...more,
  }
}

export function industry(slug: string, more: Partial<Industry> = {}): Industry {
  return { slug, name: `Industry ${slug}`, parentSlug: undefined, ...more }
}

/** A profile that is published at `T0`, for every partner. */
export function profile(slug: string, more: Partial<ProfileRecord> = {}): ProfileRecord {
  return {
    slug,
    name: `Profile ${slug}`,
    headline: 'What it does',
    country: 'DE',
    industry: 'education',
    logoUrl: undefined,
    publishedAt: T0,
    description: undefined,
    websiteUrl: undefined,
    city: undefined,
    foundedYear: undefined,
    employees: undefined,
    tags: [],
    contact: undefined,
    links: [],
    visibleTo: undefined,
    ...more,
  }
}

/** A profile with every member, and with characters that encodings easily lose. */
export const fullProfile: ProfileRecord = profile('full', {
  name: 'Université “Łódź” \u{1f600} \u0000 \ud800',
  headline: '大学 — ﬁrst of its kind',
  logoUrl: 'https://example.org/logo.png',
  publishedAt: T0 + 1,
  description: 'Line one\nline two\t"quoted" \\ and a \u2028 separator',
  websiteUrl: 'https://example.org/',
  city: 'Łódź',
  foundedYear: 1945,
  employees: { min: 0, max: undefined },
  tags: ['Zürich', 'b', 'a', 'b'],
  contact: { email: undefined, phone: '+48 42 000' },
  links: [{ rel: 'b', url: 'https://b.example/' }, { rel: 'a', url: 'https://a.example/' }],
  visibleTo: ['globex', 'acme', 'globex'],
})

export const plan: Plan = {
  slug: 'pro',
  name: 'Pro',
  description: 'For teams',
  price: { amountMinor: 4900, currency: 'EUR' },
  interval: 'month',
  features: ['b', 'a'],
  highlighted: true,
  position: undefined,
}

export const banner: BannerRecord = {
  partner: 'acme',
  title: 'Spring',
  body: undefined,
  imageUrl: 'https://example.org/spring.png',
  imageAlt: '',
  linkUrl: undefined,
  linkLabel: undefined,
  startsAt: T0,
  endsAt: undefined,
}

/** A signup of a live key of `acme` with required members only. */
export function signup(id: string, more: Partial<Signup> = {}): Signup {
  return {
    email: 'ada@example.org',
    name: 'Ada Lovelace',
    company: undefined,
    country: undefined,
    plan: undefined,
    profile: undefined,
    locale: undefined,
    message: undefined,
    consentAt: undefined,
    metadata: {},
    id: `sgn_${id.padStart(20, '0')}`,
    partner: 'acme',
    keyId: key().id,
    environment: 'live',
    createdAt: T0,
    ...more,
  }
}

/** A request of the live key of `acme`. */
export function usageCount(more: Partial<UsageCount> = {}): UsageCount {
  return {
    partner: 'acme',
    keyId: 'acme-live',
    environment: 'live',
    day: '2026-01-31',
    endpoint: 'plans',
    requests: 1,
    errors: 0,
    ...more,
  }
}

/** A reservation that expires after a day. */
export function reservation(more: Partial<IdempotencyReservation> = {}): IdempotencyReservation {
  return { key: 'order 66', fingerprint: 'f'.repeat(64), expiresAt: T0 + DAY, ...more }
}

/** Creates partners, each with the keys `SLUG-live` and `SLUG-test`. */
export async function createKeys(store: Store, ...partners: string[]): Promise<void> {
  await createPartners(store, ...partners)
  await apply(
    store,
    ...partners.flatMap((slug) =>
      (['live', 'test'] as const).map((environment): Change => ({
        type: 'key.issued',
        key: key({ id: `${slug}-${environment}`, partner: slug, environment }),
      }))
    ),
  )
}

/** A query for all profiles, by name. */
export function query(more: Partial<ProfileQuery> = {}): ProfileQuery {
  return { words: [], countries: [], industries: [], sort: 'name', after: undefined, limit: 100, ...more }
}

/** Applies changes to the current facts. */
export async function apply(store: Store, ...changes: Change[]): Promise<boolean> {
  return await store.apply(changes, (await store.revision()).facts, stamp)
}

export async function createPartners(store: Store, ...slugs: string[]): Promise<void> {
  await apply(
    store,
    ...slugs.map((slug): Change => ({ type: 'partner.created', partner: partner({ slug }) })),
  )
}

/** Imports profiles after the industries and partners that they refer to. */
export async function publish(
  store: Store,
  profiles: readonly ProfileRecord[],
  options: ImportOptions = { now: T0, actor },
): Promise<void> {
  const industries = [...new Set(profiles.map((record) => record.industry))]
  await store.importContent('industries', industries.map((slug) => industry(slug)), options)
  await store.importContent('profiles', profiles, options)
}

/** All records of a kind, by slug. */
export async function exported<K extends ContentKind>(store: Store, kind: K): Promise<ContentRecords[K][]> {
  const records: ContentRecords[K][] = []
  for await (const record of await store.exportContent(kind)) records.push(record)
  return records
}

/** Reads a short list, 100 rows at most by default: a list that repeats rows would never end. */
export async function gatherFew<T>(rows: AsyncIterable<T>, max = 100): Promise<T[]> {
  const found: T[] = []
  for await (const row of rows) if (found.push(row) === max) break
  return found
}

/** Whether a call failed, synchronously or not. */
export async function fails(call: () => unknown): Promise<boolean> {
  try {
    await call()
    return false
  } catch {
    return true
  }
}
