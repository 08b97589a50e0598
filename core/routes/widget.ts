import { array, nullable, object, strictObject, string } from 'valibot'
import { afterAll } from '../after.ts'
import { bannerShape, currentBanner } from './banner.ts'
import { cardMembers } from './card.ts'
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

const profilesShown = 6

export const widget: Route = defineRoute({
  name: 'widget',
  access: 'key',
  method: 'GET',
  path: '/partner-widget',
  scope: 'read:partner-widget',
  summary: 'Combined widget payload',
  parameters: {},
  reply: object({
    data: strictObject({
      partner: strictObject({ slug: string(), name: string() }),
      banner: nullable(bannerShape),
      profiles: array(strictObject(cardMembers)),
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
