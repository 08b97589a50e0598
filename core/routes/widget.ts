import { afterAll } from '../after.ts'
import { currentBanner } from './banner.ts'
import { countCountries, countIndustries, pricingPlans } from './lists.ts'
import { newestCards } from './profiles.ts'
import { defineRoute, type Route } from './route.ts'

/** How many profiles a widget shows. */
export const PROFILES_SHOWN = 6

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
  dependsOn: 'everything',
  handle: (_input, grant, ports) =>
    afterAll(
      [
        currentBanner(grant, ports),
        newestCards(grant, ports, PROFILES_SHOWN),
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
