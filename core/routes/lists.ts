import { boolean, check, metadata, pipe, string } from 'valibot'
import {
  COUNTRY_CODES,
  countryName,
  currencyExponent,
  isLocale,
  LOCALE_PATTERN,
} from '../content/iso-codes.ts'
import { single } from '../http/query.ts'
import { all, andThen, type MaybePromise } from '../lib/promise.ts'
import { compareCodePoints, fold } from '../lib/text.ts'
import type { Industry } from '../model.ts'
import type { Grant } from '../policy/decide.ts'
import type { Country as WireCountry, Industry as WireIndustry, Plan as WirePlan } from '../wire.ts'
import type { HandlerContext } from './context.ts'
import { defineRoute, type Route } from './route.ts'

/** How an entry of a list that people read is found: by folded name, then by what it is addressed by. */
interface Named {
  readonly folded: string
  readonly id: string
}

function byName(a: Named, b: Named): number {
  return compareCodePoints(a.folded, b.folded) || compareCodePoints(a.id, b.id)
}

/** The countries with their counts, by name; with `inUse`, only those that count something. */
export function countCountries(
  grant: Grant,
  ports: HandlerContext,
  inUse: boolean,
  locale: string,
): MaybePromise<WireCountry[]> {
  return andThen(
    ports.directory.countProfiles(grant.partner.slug, 'country', grant.now),
    (counts) =>
      COUNTRY_CODES
        .filter((code) => !inUse || (counts.get(code) ?? 0) > 0)
        .map((code) => ({ code, name: countryName(code, locale) }))
        .map((country) => ({ country, folded: fold(country.name), id: country.code }))
        .sort(byName)
        .map(({ country }) => ({ ...country, profile_count: counts.get(country.code) ?? 0 })),
  )
}

/** The industries with their counts, by name; with `inUse`, only those that count something. */
export function countIndustries(
  grant: Grant,
  ports: HandlerContext,
  inUse: boolean,
): MaybePromise<WireIndustry[]> {
  const counted = ports.directory.countProfiles(grant.partner.slug, 'industry', grant.now)
  return all<[readonly Industry[], ReadonlyMap<string, number>], WireIndustry[]>(
    [ports.directory.listIndustries(), counted],
    ([industries, counts]) =>
      industries
        .filter(({ slug }) => !inUse || (counts.get(slug) ?? 0) > 0)
        .map((industry) => ({ industry, folded: fold(industry.name), id: industry.slug }))
        .sort(byName)
        .map(({ industry: { slug, name, parentSlug } }) => ({
          slug,
          name,
          parent_slug: parentSlug ?? null,
          profile_count: counts.get(slug) ?? 0,
        })),
  )
}

/** The pricing plans by position, those without one last. */
export function pricingPlans(ports: HandlerContext): MaybePromise<WirePlan[]> {
  return andThen(ports.catalog.listPlans(), (plans) =>
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

const inUse = single(
  'boolean',
  pipe(boolean('must be true or false'), metadata({ examples: [true] })),
  false,
  'Only those with a profile',
)

export const countries: Route = defineRoute({
  name: 'countries',
  access: 'key',
  method: 'GET',
  path: '/public/countries',
  scope: 'read:countries',
  summary: 'Countries',
  description: 'All officially assigned codes of ISO 3166-1 and `XK`, by name: for filters and forms.',
  parameters: {
    in_use: inUse,
    locale: single(
      'text',
      pipe(
        string(),
        check(isLocale, 'must be a BCP 47 language tag'),
        metadata({ maxLength: 255, pattern: LOCALE_PATTERN, examples: ['de'] }),
      ),
      'en',
      'Language of the names',
    ),
  },
  limits: ['key'],
  cacheBy: 'content',
  handle: ({ query }, grant, ports) =>
    andThen(countCountries(grant, ports, query.in_use, query.locale), (data) => ({ data })),
})

export const industries: Route = defineRoute({
  name: 'industries',
  access: 'key',
  method: 'GET',
  path: '/public/industries',
  scope: 'read:industries',
  summary: 'Industries',
  description: 'The industries that profiles belong to, by name: for filters.',
  parameters: { in_use: inUse },
  limits: ['key'],
  cacheBy: 'content',
  handle: ({ query }, grant, ports) =>
    andThen(countIndustries(grant, ports, query.in_use), (data) => ({ data })),
})

export const plans: Route = defineRoute({
  name: 'plans',
  access: 'key',
  method: 'GET',
  path: '/public/plans',
  scope: 'read:plans',
  summary: 'Pricing plans',
  description: 'The plans for a pricing table, in their order.',
  parameters: {},
  limits: ['key'],
  cacheBy: 'content',
  handle: (_input, _grant, ports) => andThen(pricingPlans(ports), (data) => ({ data })),
})
