import { Problem } from '../http/problem.ts'
import { all, andThen, type MaybePromise } from '../lib/promise.ts'
import { optionalRfc3339, rfc3339 } from '../lib/time.ts'
import type { Banner } from '../model.ts'
import type { Grant } from '../policy/decide.ts'
import type { Banner as WireBanner, Widget } from '../wire.ts'
import type { HandlerContext } from './context.ts'
import { countCountries, countIndustries, pricingPlans } from './lists.ts'
import { recentCards } from './profiles.ts'
import { defineGet } from './route.ts'

/** The partner's banner, `null` if there is none or it is outside its dates. */
function currentBanner(grant: Grant, ports: HandlerContext): MaybePromise<WireBanner | null> {
  return andThen(ports.catalog.findBanner(grant.partner.slug), (banner) => {
    if (banner === undefined || (banner.startsAt ?? -Infinity) > grant.now) return null
    return (banner.endsAt ?? Infinity) > grant.now ? toWireBanner(banner) : null
  })
}

function toWireBanner(banner: Banner): WireBanner {
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
  handle: (_input, grant, ports) =>
    andThen(currentBanner(grant, ports), (data) => {
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
  handle: (_input, grant, ports) =>
    all(
      [
        currentBanner(grant, ports),
        recentCards(grant, ports, 6),
        countCountries(grant, ports, true, 'en'),
        countIndustries(grant, ports, true),
        pricingPlans(ports),
      ],
      ([banner, profiles, countries, industries, plans]) => {
        const partner = { slug: grant.partner.slug, name: grant.partner.name }
        return { data: { partner, banner, profiles, countries, industries, plans } satisfies Widget }
      },
    ),
})
