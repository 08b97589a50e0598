/** Profiles, banner, countries, industries, plans, and the widget that combines them. */
import * as v from 'valibot'
import { COUNTRY_CODES, countryName, currencyExponent } from '../content/iso-codes.ts'
import { Problem } from '../http/problem.ts'
import { all, andThen, type MaybePromise } from '../lib/promise.ts'
import { compareCodePoints, fold, foldWords } from '../lib/text.ts'
import { optionalRfc3339, rfc3339 } from '../lib/time.ts'
import type { Banner, Profile, ProfileCard } from '../model.ts'
import type { Grant } from '../policy/decide.ts'
import type { ProfileQuery } from '../ports/directory.ts'
import * as input from '../schemas/input-schemas.ts'
import type * as wire from '../wire.ts'
import { readPage } from './paging.ts'
import { defineGet, type HandlerContext } from './route.ts'

/** The newest profiles that the partner can see. */
function recentCards(grant: Grant, context: HandlerContext, limit: number): MaybePromise<wire.ProfileCard[]> {
  const filters = { words: [], countries: [], industries: [] }
  const query: ProfileQuery = { ...filters, sort: '-published_at', after: undefined, limit }
  const found = context.directory.listProfiles(grant.partner.slug, query, grant.now)
  return andThen(found, (profiles) => profiles.map(toWireCard))
}

export const recentProfiles = defineGet({
  name: 'recent-profiles',
  path: '/public/profiles/recent',
  scope: 'read:profiles',
  summary: 'List recent profiles',
  parameters: { limit: input.limit('How many profiles.', 50, 10) },
  cacheBy: 'content',
  handle: ({ query }, grant, context) =>
    andThen(recentCards(grant, context, query.limit), (data) => ({ data })),
})

const search = input.form(
  'must have 2 to 100 characters, a letter or digit among them',
  {
    description: 'Words that must match the start of a word in name, headline, description or tags.',
    minLength: 2,
    maxLength: 100,
    syntax: 'search',
    examples: ['freight'],
  },
  (text) => {
    const length = [...text].length
    return length >= 2 && length <= 100 && foldWords(text).length > 0 ? text : undefined
  },
)

const industry = input.form(
  'must be an industry slug',
  { maxLength: 80, examples: ['logistics'] },
  (text) => text.length <= 80 ? text : undefined,
)

export const directory = defineGet({
  name: 'profiles',
  path: '/public/profiles',
  scope: 'read:profiles',
  summary: 'List profiles',
  parameters: {
    q: v.optional(search),
    country: input.repeatable('ISO 3166-1 alpha-2, in either case: any of these.', input.country({})),
    industry: input.repeatable('Industry slug: any of these.', industry),
    sort: v.optional(
      v.pipe(
        v.picklist(['name', '-published_at'], 'must be name or -published_at'),
        v.description('The order: by name, or newest first.'),
      ),
      'name',
    ),
    limit: input.limit('How many profiles a page has.', 100, 20),
    cursor: input.cursor,
  },
  cacheBy: 'content',
  handle: ({ query }, grant, context) => {
    const filter = {
      words: query.q === undefined ? [] : [...new Set(foldWords(query.q))].sort(),
      countries: [...new Set(query.country)].sort(),
      industries: [...new Set(query.industry)].sort(),
      sort: query.sort,
    }
    return readPage(context.cursors, query, {
      partner: grant.partner.slug,
      identity: filter,
      read(place, limit) {
        const start = place &&
          { key: query.sort === 'name' ? fold(String(place[0])) : place[0], slug: place[1] }
        return context.directory.listProfiles(
          grant.partner.slug,
          { ...filter, after: start, limit },
          grant.now,
        )
      },
      // Folding can make a name 18 times as long, and JSON a control character six times.
      positionOf: ({ name, publishedAt, slug }) => [
        query.sort === 'name' ? name.replace(/\p{Cc}/gu, ' ') : publishedAt,
        slug,
      ],
      present: toWireCard,
    })
  },
})

export const profileDetail = defineGet({
  name: 'profile',
  path: '/public/profiles/:slug',
  scope: 'read:profiles',
  summary: 'Get a profile',
  problems: ['profile_not_found'],
  parameters: {},
  cacheBy: 'content',
  handle: ({ params: { slug } }, grant, context) =>
    andThen(context.directory.findProfile(grant.partner.slug, slug!, grant.now), (profile) => {
      if (profile === undefined) throw new Problem('profile_not_found')
      return { data: toWireProfile(profile) }
    }),
})

function toWireProfile(profile: Profile): wire.Profile {
  const { employees, contact } = profile
  return {
    ...toWireCard(profile),
    description: profile.description ?? null,
    website_url: profile.websiteUrl ?? null,
    city: profile.city ?? null,
    founded_year: profile.foundedYear ?? null,
    employees: employees == null ? null : { min: employees.min ?? null, max: employees.max ?? null },
    tags: profile.tags,
    contact: contact == null ? null : { email: contact.email ?? null, phone: contact.phone ?? null },
    links: profile.links.map(({ rel, url }) => ({ rel, url })),
  }
}

export function toWireCard(card: ProfileCard): wire.ProfileCard {
  return {
    slug: card.slug,
    name: card.name,
    headline: card.headline,
    country: { code: card.country, name: countryName(card.country, 'en') },
    industry: { slug: card.industry.slug, name: card.industry.name },
    logo_url: card.logoUrl ?? null,
    published_at: rfc3339(card.publishedAt),
    updated_at: rfc3339(card.updatedAt),
  }
}

/** Sorts by folded name, then by id. */
function sortByName<T extends { readonly name: string }>(rows: readonly T[], idOf: (row: T) => string): T[] {
  return rows
    .map((row) => ({ row, folded: fold(row.name), id: idOf(row) }))
    .sort((a, b) => compareCodePoints(a.folded, b.folded) || compareCodePoints(a.id, b.id))
    .map(({ row }) => row)
}

/** The countries by name; with `inUse`, only those with a profile. */
function countCountries(
  grant: Grant,
  context: HandlerContext,
  inUse: boolean,
  locale: string,
): MaybePromise<wire.Country[]> {
  return andThen(
    context.directory.countProfiles(grant.partner.slug, 'country', grant.now),
    (counts) => {
      const rows = COUNTRY_CODES
        .map((code) => ({ code, name: countryName(code, locale), profile_count: counts.get(code) ?? 0 }))
        .filter(({ profile_count }) => !inUse || profile_count > 0)
      return sortByName(rows, ({ code }) => code)
    },
  )
}

/** The industries by name; with `inUse`, only those with a profile. */
function countIndustries(
  grant: Grant,
  context: HandlerContext,
  inUse: boolean,
): MaybePromise<wire.Industry[]> {
  const counted = context.directory.countProfiles(grant.partner.slug, 'industry', grant.now)
  return all(
    [context.directory.listIndustries(), counted],
    ([industries, counts]) => {
      const rows = industries
        .map(({ slug, name, parentSlug }) => ({
          slug,
          name,
          parent_slug: parentSlug ?? null,
          profile_count: counts.get(slug) ?? 0,
        }))
        .filter(({ profile_count }) => !inUse || profile_count > 0)
      return sortByName(rows, ({ slug }) => slug)
    },
  )
}

/** The plans by position; those without one come last. */
function pricingPlans(context: HandlerContext): MaybePromise<wire.Plan[]> {
  return andThen(context.catalog.listPlans(), (plans) =>
    [...plans]
      .sort((a, b) =>
        a.position === b.position
          ? compareCodePoints(a.slug, b.slug)
          : (a.position ?? Infinity) - (b.position ?? Infinity)
      )
      .map((plan) => ({
        slug: plan.slug,
        name: plan.name,
        description: plan.description,
        price: {
          amount_minor: plan.price.amountMinor,
          currency: plan.price.currency,
          exponent: currencyExponent(plan.price.currency),
        },
        interval: plan.interval,
        features: plan.features,
        highlighted: plan.highlighted,
        position: plan.position ?? null,
      })))
}

export const countries = defineGet({
  name: 'countries',
  path: '/public/countries',
  scope: 'read:countries',
  summary: 'List countries',
  parameters: {
    in_use: input.inUse,
    locale: v.optional(input.locale('Language of the names.', 'de'), 'en'),
  },
  cacheBy: 'content',
  handle: ({ query }, grant, context) =>
    andThen(countCountries(grant, context, query.in_use, query.locale), (data) => ({ data })),
})

export const industries = defineGet({
  name: 'industries',
  path: '/public/industries',
  scope: 'read:industries',
  summary: 'List industries',
  parameters: { in_use: input.inUse },
  cacheBy: 'content',
  handle: ({ query }, grant, context) =>
    andThen(countIndustries(grant, context, query.in_use), (data) => ({ data })),
})

export const plans = defineGet({
  name: 'plans',
  path: '/public/plans',
  scope: 'read:plans',
  summary: 'List plans',
  parameters: {},
  cacheBy: 'content',
  handle: (_input, _grant, context) => andThen(pricingPlans(context), (data) => ({ data })),
})

/** The partner's banner, `null` if there is none or it is outside its dates. */
function currentBanner(grant: Grant, context: HandlerContext): MaybePromise<wire.Banner | null> {
  return andThen(context.catalog.findBanner(grant.partner.slug), (banner) => {
    if (banner === undefined || (banner.startsAt ?? -Infinity) > grant.now) return null
    return (banner.endsAt ?? Infinity) > grant.now ? toWireBanner(banner) : null
  })
}

function toWireBanner(banner: Banner): wire.Banner {
  return {
    title: banner.title,
    body: banner.body ?? null,
    image_url: banner.imageUrl ?? null,
    image_alt: banner.imageAlt ?? null,
    link_url: banner.linkUrl ?? null,
    link_label: banner.linkLabel ?? null,
    starts_at: optionalRfc3339(banner.startsAt),
    ends_at: optionalRfc3339(banner.endsAt),
    updated_at: rfc3339(banner.updatedAt),
  }
}

export const banner = defineGet({
  name: 'banner',
  path: '/public/banner',
  scope: 'read:banner',
  summary: 'Get the banner',
  problems: ['banner_not_found'],
  parameters: {},
  cacheBy: 'content',
  handle: (_input, grant, context) =>
    andThen(currentBanner(grant, context), (data) => {
      if (data === null) throw new Problem('banner_not_found')
      return { data }
    }),
})

export const widget = defineGet({
  name: 'widget',
  path: '/partner-widget',
  scope: 'read:partner-widget',
  summary: 'Get the widget',
  parameters: {},
  cacheBy: 'content+partner',
  handle: (_input, grant, context) =>
    all(
      [
        currentBanner(grant, context),
        recentCards(grant, context, 6),
        countCountries(grant, context, true, 'en'),
        countIndustries(grant, context, true),
        pricingPlans(context),
      ],
      ([banner, profiles, countries, industries, plans]) => {
        const partner = { slug: grant.partner.slug, name: grant.partner.name }
        return { data: { partner, banner, profiles, countries, industries, plans } satisfies wire.Widget }
      },
    ),
})
