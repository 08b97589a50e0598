import * as v from 'valibot'
import { formatValue } from '../http/redact.ts'
import type { Industry, Plan } from '../model.ts'
import type { BannerRecord, ProfileRecord } from '../ports/content.ts'
import {
  check,
  instant,
  integer,
  list,
  mustBe,
  partnerSlug,
  type References,
  slug,
  strictFields,
  text,
  webUrl,
} from './fields.ts'
import { isCountryCode, isCurrencyCode } from './iso-codes.ts'

/** The line of a profile. */
export function profileSchema(references: References): v.GenericSchema<unknown, ProfileRecord> {
  const { industries } = references
  return v.pipe(
    strictFields({
      slug: slug(),
      name: text(200),
      headline: text(300),
      country: v.pipe(
        v.string(mustBe('text')),
        v.check(isCountryCode, mustBe('an ISO 3166-1 alpha-2 code or XK, in upper case')),
      ),
      industry: slug((value) =>
        industries === undefined || industries.has(value)
          ? undefined
          : `must be an industry that exists, not ${formatValue(value)}`
      ),
      published_at: v.nullable(instant()),
      logo_url: v.nullish(webUrl()),
      description: v.nullish(text(5_000)),
      website_url: v.nullish(webUrl()),
      city: v.nullish(text(200)),
      founded_year: v.nullish(integer(1, 9_999)),
      employees: v.nullish(
        strictFields(
          { min: v.nullish(integer(0)), max: v.nullish(integer(0)) },
          { low: 'min', high: 'max', relation: 'at least' },
        ),
      ),
      tags: v.nullish(list(text(50), 20)),
      contact: v.nullish(strictFields({ email: v.nullish(email()), phone: v.nullish(text(50)) })),
      links: v.nullish(list(strictFields({ rel: text(50), url: webUrl() }), 20)),
      visible_to: v.nullish(partnerList(references)),
    }),
    v.transform((line) => ({
      slug: line.slug,
      name: line.name,
      headline: line.headline,
      country: line.country,
      industry: line.industry,
      publishedAt: line.published_at ?? undefined,
      logoUrl: line.logo_url ?? undefined,
      description: line.description ?? undefined,
      websiteUrl: line.website_url ?? undefined,
      city: line.city ?? undefined,
      foundedYear: line.founded_year ?? undefined,
      employees: line.employees
        ? { min: line.employees.min ?? undefined, max: line.employees.max ?? undefined }
        : undefined,
      tags: line.tags ?? [],
      contact: line.contact
        ? { email: line.contact.email ?? undefined, phone: line.contact.phone ?? undefined }
        : undefined,
      links: line.links ?? [],
      visibleTo: line.visible_to ?? undefined,
    })),
  )
}

function email(): v.GenericSchema<unknown, string> {
  // valibot's expression is the one of the HTML living standard, which browsers apply to input type=email.
  return v.pipe(text(254), v.regex(v.RFC_EMAIL_REGEX, mustBe('an e-mail address')))
}

function partnerList(references: References): v.GenericSchema<unknown, string[]> {
  return v.pipe(
    v.array(partnerSlug(references), mustBe('a list of partner slugs or null')),
    check((slugs: string[]) => {
      if (new Set(slugs).size === slugs.length) return undefined
      return `must not name ${formatValue(slugs.find((value, index) => slugs.indexOf(value) < index))} twice`
    }),
  )
}

/** The fields of a profile in the order of an export. */
export function profileFields(record: ProfileRecord): unknown {
  return {
    slug: record.slug,
    name: record.name,
    headline: record.headline,
    country: record.country,
    industry: record.industry,
    published_at: record.publishedAt === undefined ? null : new Date(record.publishedAt).toISOString(),
    logo_url: record.logoUrl ?? null,
    description: record.description ?? null,
    website_url: record.websiteUrl ?? null,
    city: record.city ?? null,
    founded_year: record.foundedYear ?? null,
    employees: record.employees
      ? { min: record.employees.min ?? null, max: record.employees.max ?? null }
      : null,
    tags: record.tags,
    contact: record.contact
      ? { email: record.contact.email ?? null, phone: record.contact.phone ?? null }
      : null,
    links: record.links.map(({ rel, url }) => ({ rel, url })),
    visible_to: record.visibleTo ?? null,
  }
}

/** The line of a banner. */
export function bannerSchema(references: References): v.GenericSchema<unknown, BannerRecord> {
  return v.pipe(
    strictFields({
      partner: partnerSlug(references),
      title: text(200),
      body: v.nullish(text(5_000)),
      image_url: v.nullish(webUrl()),
      image_alt: v.nullish(text(500)),
      link_url: v.nullish(webUrl()),
      link_label: v.nullish(text(200)),
      starts_at: v.nullish(instant()),
      ends_at: v.nullish(instant()),
    }, { low: 'starts_at', high: 'ends_at', relation: 'after' }),
    v.transform((line) => ({
      partner: line.partner,
      title: line.title,
      body: line.body ?? undefined,
      imageUrl: line.image_url ?? undefined,
      imageAlt: line.image_alt ?? undefined,
      linkUrl: line.link_url ?? undefined,
      linkLabel: line.link_label ?? undefined,
      startsAt: line.starts_at ?? undefined,
      endsAt: line.ends_at ?? undefined,
    })),
  )
}

/** The fields of a banner in the order of an export. */
export function bannerFields(banner: BannerRecord): unknown {
  return {
    partner: banner.partner,
    title: banner.title,
    body: banner.body ?? null,
    image_url: banner.imageUrl ?? null,
    image_alt: banner.imageAlt ?? null,
    link_url: banner.linkUrl ?? null,
    link_label: banner.linkLabel ?? null,
    starts_at: banner.startsAt === undefined ? null : new Date(banner.startsAt).toISOString(),
    ends_at: banner.endsAt === undefined ? null : new Date(banner.endsAt).toISOString(),
  }
}

/** The line of an industry. Whether its parent exists is known only after the last line. */
export function industrySchema(): v.GenericSchema<unknown, Industry> {
  return v.pipe(
    strictFields({ slug: slug(), name: text(200), parent_slug: v.nullish(slug()) }),
    v.transform((line) => ({ slug: line.slug, name: line.name, parentSlug: line.parent_slug ?? undefined })),
  )
}

/** The fields of an industry in the order of an export. */
export function industryFields({ slug, name, parentSlug }: Industry): unknown {
  return { slug, name, parent_slug: parentSlug ?? null }
}

/** The line of a plan. */
export function planSchema(): v.GenericSchema<unknown, Plan> {
  return v.pipe(
    strictFields({
      slug: slug(),
      name: text(200),
      description: text(5_000),
      price: strictFields({
        amount_minor: integer(0),
        currency: v.pipe(
          v.string(mustBe('text')),
          v.check(isCurrencyCode, mustBe('the ISO 4217 code of a current currency, in upper case')),
        ),
      }),
      interval: v.picklist(['month', 'year', 'once'], mustBe('month, year or once')),
      features: list(text(200), 50),
      highlighted: v.nullish(v.boolean(mustBe('true or false'))),
      position: v.nullish(integer()),
    }),
    v.transform((line) => ({
      slug: line.slug,
      name: line.name,
      description: line.description,
      price: { amountMinor: line.price.amount_minor, currency: line.price.currency },
      interval: line.interval,
      features: line.features,
      highlighted: line.highlighted ?? false,
      position: line.position ?? undefined,
    })),
  )
}

/** The fields of a plan in the order of an export. */
export function planFields(plan: Plan): unknown {
  return {
    slug: plan.slug,
    name: plan.name,
    description: plan.description,
    price: { amount_minor: plan.price.amountMinor, currency: plan.price.currency },
    interval: plan.interval,
    features: plan.features,
    highlighted: plan.highlighted,
    position: plan.position ?? null,
  }
}
