/**
 * Content records as JSON text in one canonical form: equal records have equal texts, whatever the order of their
 * members, and reading a text gives the record back, its absent values present as `undefined`.
 */
import type { BannerRecord, ContentKind, ContentRecords, ProfileRecord } from '../../core/content/records.ts'
import type { Industry, Plan, ProfileCard } from '../../core/model.ts'
import type { MaybePromise } from '../../core/ports.ts'

/** What a list shows of a profile beyond the columns that queries need. */
export type CardPart = Pick<ProfileCard, 'name' | 'headline' | 'logoUrl'>

/** What only the profile itself shows, and what decides who sees it. */
export type DetailPart = Omit<ProfileRecord, 'slug' | 'country' | 'industry' | 'publishedAt' | keyof CardPart>

export function cardText({ name, headline, logoUrl }: CardPart): string {
  return JSON.stringify({ name, headline, logoUrl })
}

export function readCard(text: string): CardPart {
  const { name, headline, logoUrl } = JSON.parse(text)
  return { name, headline, logoUrl }
}

export function detailText(profile: DetailPart): string {
  return JSON.stringify(detail(profile))
}

export function readDetail(text: string): DetailPart {
  return detail(JSON.parse(text))
}

/** How the records of a kind are addressed and written. */
export interface RecordFormat<R> {
  slug(record: R): string
  text(record: R): string
  read(text: string): R
}

/** All records of an import, at once where they are at hand. */
export function gather<R>(records: Iterable<R> | AsyncIterable<R>): MaybePromise<readonly R[]> {
  if (Array.isArray(records)) return records
  return Symbol.iterator in records ? [...records] : gatherAsync(records)
}

async function gatherAsync<R>(records: AsyncIterable<R>): Promise<R[]> {
  const all: R[] = []
  for await (const record of records) all.push(record)
  return all
}

/** The whole records of every kind as text. */
export const RECORD_FORMATS: { readonly [K in ContentKind]: RecordFormat<ContentRecords[K]> } = {
  profiles: format((profile) => profile.slug, profileRecord),
  industries: format((industry) => industry.slug, industryRecord),
  plans: format((plan) => plan.slug, planRecord),
  banners: format((banner) => banner.partner, bannerRecord),
}

function format<R>(slug: (record: R) => string, canonical: (record: R) => R): RecordFormat<R> {
  return {
    slug,
    text: (record) => JSON.stringify(canonical(record)),
    read: (text) => canonical(JSON.parse(text)),
  }
}

function profileRecord(profile: ProfileRecord): ProfileRecord {
  const { slug, country, industry, publishedAt, name, headline, logoUrl } = profile
  return { slug, country, industry, publishedAt, name, headline, logoUrl, ...detail(profile) }
}

function detail(profile: DetailPart): DetailPart {
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
