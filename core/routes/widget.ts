import { all } from '../lib/promise.ts'
import { WIDGET_PROFILES } from '../schemas/fields.ts'
import type { Widget } from '../wire.ts'
import { currentBanner } from './banner.ts'
import { countCountries, countIndustries, pricingPlans } from './lists.ts'
import { recentCards } from './profiles.ts'
import { defineGet } from './route.ts'

export const widget = defineGet({
  name: 'widget',
  path: '/partner-widget',
  scope: 'read:partner-widget',
  summary: 'Combined widget payload',
  description:
    'Everything that a widget shows, in one call. Each part equals its own endpoint; countries and industries are those in use.',
  parameters: {},
  cacheBy: 'content+partner',
  handle: (_input, grant, ports) =>
    all(
      [
        currentBanner(grant, ports),
        recentCards(grant, ports, WIDGET_PROFILES),
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
