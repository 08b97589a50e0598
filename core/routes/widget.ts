import { all } from '../lib/promise.ts'
import { WIDGET_PROFILES } from '../schemas/fields.ts'
import { currentBanner } from './banner.ts'
import { countCountries, countIndustries, pricingPlans } from './lists.ts'
import { recentCards } from './profiles.ts'
import { defineRoute, type Route } from './route.ts'

export const widget: Route = defineRoute({
  name: 'widget',
  access: 'key',
  method: 'GET',
  path: '/partner-widget',
  scope: 'read:partner-widget',
  summary: 'Combined widget payload',
  description:
    'All that a widget draws, in one call: each part as its own endpoint has it, countries and industries only ' +
    'those in use.',
  parameters: {},
  limits: ['key'],
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
      ([banner, profiles, countries, industries, plans]) => ({
        data: {
          partner: { slug: grant.partner.slug, name: grant.partner.name },
          banner,
          profiles,
          countries,
          industries,
          plans,
        },
      }),
    ),
})
