/**
 * Content records as JSON text in one canonical form: equal records have equal texts, whatever the order of their
 * members, and reading a text gives the record back, its absent values present as `undefined`.
 */
import type { MaybePromise } from '../../core/lib/promise.ts'
import { foldWords } from '../../core/lib/text.ts'
import type { Industry, Plan, ProfileCard } from '../../core/model.ts'
import type { BannerRecord, ContentKind, ContentRecords, ProfileRecord } from '../../core/ports/content.ts'

/** What a list shows of a profile beyond the columns that queries need. */
export type CardFields = Pick<ProfileCard, 'name' | 'headline' | 'logoUrl'>

/** What only the profile itself shows, and what decides who sees it. */
export type DetailFields = Omit<
  ProfileRecord,
  'slug' | 'country' | 'industry' | 'publishedAt' | keyof CardFields
>

export function cardText({ name, headline, logoUrl }: CardFields): string {
  return JSON.stringify({ name, headline, logoUrl })
}

export function readCard(text: string): CardFields {
  const { name, headline, logoUrl } = JSON.parse(text)
  return { name, headline, logoUrl }
}

export function detailText(profile: DetailFields): string {
  return JSON.stringify(toDetail(profile))
}

export function readDetail(text: string): DetailFields {
  return toDetail(JSON.parse(text))
}

/** How the records of a kind are addressed and written. */
export interface RecordFormat<R> {
  slug(record: R): string
  text(record: R): string
  read(text: string): R
}

/** All records of an import, at once where they are at hand. */
export function collect<R>(records: Iterable<R> | AsyncIterable<R>): MaybePromise<readonly R[]> {
  if (Array.isArray(records)) return records
  return Symbol.iterator in records ? [...records] : collectAsync(records)
}

async function collectAsync<R>(records: AsyncIterable<R>): Promise<R[]> {
  const all: R[] = []
  for await (const record of records) all.push(record)
  return all
}

/** The whole records of every kind as text. */
export const RECORD_FORMATS: { readonly [K in ContentKind]: RecordFormat<ContentRecords[K]> } = {
  profiles: recordFormat((profile) => profile.slug, profileRecord),
  industries: recordFormat((industry) => industry.slug, industryRecord),
  plans: recordFormat((plan) => plan.slug, planRecord),
  banners: recordFormat((banner) => banner.partner, bannerRecord),
}

function recordFormat<R>(slug: (record: R) => string, canonical: (record: R) => R): RecordFormat<R> {
  return {
    slug,
    text: (record) => JSON.stringify(canonical(record)),
    read: (text) => canonical(JSON.parse(text)),
  }
}

function profileRecord(profile: ProfileRecord): ProfileRecord {
  const { slug, country, industry, publishedAt, name, headline, logoUrl } = profile
  return { slug, country, industry, publishedAt, name, headline, logoUrl, ...toDetail(profile) }
}

function toDetail(profile: DetailFields): DetailFields {
  const { employees, contact } = profile
  return {
    description: profile.description,
    websiteUrl: profile.websiteUrl,
    city: profile.city,
    foundedYear: profile.foundedYear,
    employees: employees && { min: employees.min, max: employees.max },
    tags: profile.tags,
    contact: contact && { email: contact.email, phone: contact.phone },
    links: profile.links.map(({ rel, url }) => ({ rel, url })),
    visibleTo: profile.visibleTo,
  }
}

function industryRecord({ slug, name, parentSlug }: Industry): Industry {
  return { slug, name, parentSlug }
}

function planRecord(plan: Plan): Plan {
  return {
    slug: plan.slug,
    name: plan.name,
    description: plan.description,
    price: { amountMinor: plan.price.amountMinor, currency: plan.price.currency },
    interval: plan.interval,
    features: plan.features,
    highlighted: plan.highlighted,
    position: plan.position,
  }
}

function bannerRecord(banner: BannerRecord): BannerRecord {
  return {
    partner: banner.partner,
    title: banner.title,
    body: banner.body,
    imageUrl: banner.imageUrl,
    imageAlt: banner.imageAlt,
    linkUrl: banner.linkUrl,
    linkLabel: banner.linkLabel,
    startsAt: banner.startsAt,
    endsAt: banner.endsAt,
  }
}

/** What search looks at of a profile: each folded word once. */
export function searchWords(profile: ProfileRecord): Iterable<string> {
  const text = [profile.name, profile.headline, profile.description ?? '', ...profile.tags].join(' ')
  return new Set(foldWords(text))
}

/** The words with a space before each, so that `' uni'` finds a start. */
export function searchText(profile: ProfileRecord): string {
  return Array.from(searchWords(profile), (word) => ` ${word}`).join('')
}

/** Whether every one of `words`, folded, starts a word of a search text. */
export function matchesWords(text: string, words: readonly string[]): boolean {
  return words.every((word) => text.includes(` ${word}`))
}
