import { array, metadata, nullable, object, pipe, strictObject } from 'valibot'
import { afterAll } from '../after.ts'
import { bannerShape, currentBanner } from './banner.ts'
import { cardShape } from './card.ts'
import {
  countCountries,
  countIndustries,
  countriesShape,
  industriesShape,
  plansShape,
  pricingPlans,
} from './lists.ts'
import { newestCards } from './profiles.ts'
import { defineRoute, type Route } from './route.ts'
import { slugShape, textShape } from './shapes.ts'

const profilesShown = 6

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
  reply: object({
    data: strictObject({
      partner: strictObject({
        slug: slugShape('What the partner is addressed by.', 'acme'),
        name: textShape('Name to show.', 'Acme Travel', 200),
      }),
      banner: nullable(bannerShape),
      profiles: pipe(
        array(cardShape),
        metadata({ description: 'The newest profiles.', maxItems: profilesShown }),
      ),
      countries: countriesShape,
      industries: industriesShape,
      plans: plansShape,
    }),
  }),
  limits: ['key'],
  dependsOn: 'everything',
  handle: (_input, grant, ports) =>
    afterAll(
      [
        currentBanner(grant, ports),
        newestCards(grant, ports, profilesShown),
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
