/**
 * Content records as JSON text. Members have a fixed order, so that equal records have equal texts; reading a text
 * returns every member, absent ones as `undefined`.
 */
import type { MaybePromise } from '../../core/lib/promise.ts'
import type { Plan, ProfileCard } from '../../core/model.ts'
import type { BannerRecord, ProfileRecord } from '../../core/ports/content.ts'
import type { ProfileQuery } from '../../core/ports/directory.ts'

/** The members of a list item that no query needs as columns. */
type CardFields = Pick<ProfileCard, 'name' | 'headline' | 'logoUrl'>

/** The members that only the profile itself shows, and its audience. */
type DetailFields = Omit<ProfileRecord, 'slug' | 'country' | 'industry' | 'publishedAt' | keyof CardFields>

export function pickCard({ name, headline, logoUrl }: CardFields): CardFields {
  return { name, headline, logoUrl }
}

export function readCard(text: string): CardFields {
  return pickCard(JSON.parse(text))
}

export function pickDetail(profile: DetailFields): DetailFields {
  const { description, websiteUrl, city, foundedYear, employees, tags, contact, links, visibleTo } = profile
  return {
    description,
    websiteUrl,
    city,
    foundedYear,
    employees: employees && { min: employees.min, max: employees.max },
    tags,
    contact: contact && { email: contact.email, phone: contact.phone },
    links: links.map(({ rel, url }) => ({ rel, url })),
    visibleTo,
  }
}

export function readDetail(text: string): DetailFields {
  return pickDetail(JSON.parse(text))
}

export function pickPlan(plan: Plan): Plan {
  const { slug, name, description, interval, features, highlighted, position } = plan
  const { amountMinor, currency } = plan.price
  const price = { amountMinor, currency }
  return { slug, name, description, price, interval, features, highlighted, position }
}

export function pickBanner(banner: BannerRecord): BannerRecord {
  const { partner, title, body, imageUrl, imageAlt, linkUrl, linkLabel, startsAt, endsAt } = banner
  return { partner, title, body, imageUrl, imageAlt, linkUrl, linkLabel, startsAt, endsAt }
}

/** The records of an import as a list: synchronous unless they arrive one by one. */
export function collect<R>(records: Iterable<R> | AsyncIterable<R>): MaybePromise<readonly R[]> {
  if (Array.isArray(records)) return records
  return Symbol.iterator in records ? [...records] : collectAsync(records)
}

async function collectAsync<R>(records: AsyncIterable<R>): Promise<R[]> {
  const all: R[] = []
  for await (const record of records) all.push(record)
  return all
}

/** The position that a page starts after. By recency, profiles that are not due come before it. */
export function startPosition(
  { sort, after }: ProfileQuery,
  now: number,
): [key: string | number, slug: string] {
  if (sort === 'name') return after === undefined ? ['', ''] : [after.key, after.slug]
  return after === undefined || Number(after.key) > now ? [-now, ''] : [-after.key, after.slug]
}
