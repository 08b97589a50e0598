import * as v from 'valibot'
import { echo } from '../admin/echo.ts'
import { isCountryCode } from './countries.ts'
import {
  fields,
  instant,
  list,
  mustBe,
  partnerSlug,
  type References,
  rule,
  slug,
  text,
  webUrl,
  whole,
} from './fields.ts'
import type { ProfileRecord } from './records.ts'

/** The line of a profile. */
export function profileLine(references: References): v.GenericSchema<unknown, ProfileRecord> {
  const { industries } = references
  return v.pipe(
    fields({
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
          : `must be an industry that exists, not ${echo(value)}`
      ),
      published_at: v.nullable(instant()),
      logo_url: v.nullish(webUrl()),
      description: v.nullish(text(5_000)),
      website_url: v.nullish(webUrl()),
      city: v.nullish(text(200)),
      founded_year: v.nullish(whole(1, 9_999)),
      employees: v.nullish(
        fields(
          { min: v.nullish(whole(0)), max: v.nullish(whole(0)) },
          { low: 'min', high: 'max', relation: 'at least' },
        ),
      ),
      tags: v.nullish(list(text(50), 20)),
      contact: v.nullish(fields({ email: v.nullish(email()), phone: v.nullish(text(50)) })),
      links: v.nullish(list(fields({ rel: text(50), url: webUrl() }), 20)),
      visible_to: v.nullish(partners(references)),
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

function partners(references: References): v.GenericSchema<unknown, string[]> {
  return v.pipe(
    v.array(partnerSlug(references), mustBe('a list of partner slugs or null')),
    rule((slugs: string[]) => {
      if (new Set(slugs).size === slugs.length) return undefined
      return `must not name ${echo(slugs.find((value, index) => slugs.indexOf(value) < index))} twice`
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
