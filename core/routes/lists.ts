import {
  COUNTRY_CODES,
  countryName,
  currencyExponent,
  isLocale,
  LOCALE_MESSAGE,
} from '../content/iso-codes.ts'
import { single } from '../http/query.ts'
import { all, andThen, type MaybePromise } from '../lib/promise.ts'
import { compareCodePoints, fold } from '../lib/text.ts'
import type { Industry } from '../model.ts'
import type { Grant } from '../policy/decide.ts'
import type { Country as WireCountry, Industry as WireIndustry, Plan as WirePlan } from '../wire.ts'
import type { HandlerContext } from './context.ts'
import { defineGet } from './route.ts'

/** Sorts by folded name, then by id. */
function sortByName<T extends { readonly name: string }>(rows: readonly T[], idOf: (row: T) => string): T[] {
  return rows
    .map((row) => ({ row, folded: fold(row.name), id: idOf(row) }))
    .sort((a, b) => compareCodePoints(a.folded, b.folded) || compareCodePoints(a.id, b.id))
    .map(({ row }) => row)
}

/** The countries by name; with `inUse`, only those with a profile. */
export function countCountries(
  grant: Grant,
  ports: HandlerContext,
  inUse: boolean,
  locale: string,
): MaybePromise<WireCountry[]> {
  return andThen(
    ports.directory.countProfiles(grant.partner.slug, 'country', grant.now),
    (counts) => {
      const rows = COUNTRY_CODES
        .map((code) => ({ code, name: countryName(code, locale), profile_count: counts.get(code) ?? 0 }))
        .filter(({ profile_count }) => !inUse || profile_count > 0)
      return sortByName(rows, ({ code }) => code)
    },
  )
}

/** The industries by name; with `inUse`, only those with a profile. */
export function countIndustries(
  grant: Grant,
  ports: HandlerContext,
  inUse: boolean,
): MaybePromise<WireIndustry[]> {
  const counted = ports.directory.countProfiles(grant.partner.slug, 'industry', grant.now)
  return all<[readonly Industry[], ReadonlyMap<string, number>], WireIndustry[]>(
    [ports.directory.listIndustries(), counted],
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
  (text) => text === 'true' || (text === 'false' ? false : undefined),
  'must be true or false',
  false,
)

export const countries = defineGet({
  name: 'countries',
  path: '/public/countries',
  scope: 'read:countries',
  summary: 'List countries',
  parameters: {
    in_use: inUse,
    locale: single((text) => isLocale(text) ? text : undefined, LOCALE_MESSAGE, 'en'),
  },
  cacheBy: 'content',
  handle: ({ query }, grant, ports) =>
    andThen(countCountries(grant, ports, query.in_use, query.locale), (data) => ({ data })),
})

export const industries = defineGet({
  name: 'industries',
  path: '/public/industries',
  scope: 'read:industries',
  summary: 'List industries',
  parameters: { in_use: inUse },
  cacheBy: 'content',
  handle: ({ query }, grant, ports) =>
    andThen(countIndustries(grant, ports, query.in_use), (data) => ({ data })),
})

export const plans = defineGet({
  name: 'plans',
  path: '/public/plans',
  scope: 'read:plans',
  summary: 'List plans',
  parameters: {},
  cacheBy: 'content',
  handle: (_input, _grant, ports) => andThen(pricingPlans(ports), (data) => ({ data })),
})
