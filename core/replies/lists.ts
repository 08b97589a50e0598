import { array, type GenericSchema, metadata, nullable, picklist, pipe, strictObject } from 'valibot'
import { COUNTRY_CODES } from '../content/countries.ts'
import type { Country, Industry, Plan } from '../wire.ts'
import {
  countryShape,
  countShape,
  flagShape,
  formShape,
  integerShape,
  slugShape,
  textShape,
} from './shapes.ts'

/** Schema of the countries on the wire. */
export const countriesShape: GenericSchema<unknown, Country[]> = pipe(
  array(
    pipe(
      strictObject({
        code: countryShape(),
        name: textShape('Name in the language asked for.', 'Germany', 200),
        profile_count: countShape('How many profiles the partner can see there.', 12),
      }),
      metadata({
        title: 'Country',
        description: 'A country with the profiles that the partner can see in it.',
      }),
    ),
  ),
  metadata({ maxItems: COUNTRY_CODES.length }),
)

/** Schema of the industries on the wire. */
export const industriesShape: GenericSchema<unknown, Industry[]> = array(
  pipe(
    strictObject({
      slug: slugShape('What the industry is addressed by.', 'logistics'),
      name: textShape('Name to show.', 'Logistics', 200),
      parent_slug: nullable(slugShape('The industry that this one is a part of.', 'leisure')),
      profile_count: countShape('How many profiles are in it, those in its parts not counted.', 7),
    }),
    metadata({
      title: 'Industry',
      description: 'An industry with the profiles that the partner can see in it.',
    }),
  ),
)

/** Schema of the plans on the wire. */
export const plansShape: GenericSchema<unknown, Plan[]> = array(
  pipe(
    strictObject({
      slug: slugShape('What the plan is addressed by.', 'starter'),
      name: textShape('Name to show.', 'Starter', 200),
      description: textShape('What it is for.', 'For one site that shows a handful of profiles.', 5000),
      price: pipe(
        strictObject({
          amount_minor: countShape('Amount in the minor unit of the currency.', 1900),
          currency: formShape('ISO 4217.', 'EUR', '^[A-Z]{3}$', 3),
          exponent: countShape('Digits of the minor unit: 2 for EUR, 0 for JPY, 3 for KWD.', 2, 4),
        }),
        metadata({ title: 'Money', description: 'An amount of money, in integers only.' }),
      ),
      interval: pipe(
        picklist(['month', 'year', 'once']),
        metadata({ description: 'How often the price is due.', examples: ['month'] }),
      ),
      features: pipe(
        array(textShape('One thing that it has.', 'Recent profiles', 200)),
        metadata({ description: 'What it has, in order.', maxItems: 50 }),
      ),
      highlighted: flagShape('Whether it is the one to point at.', false),
      position: nullable(integerShape('Its place; plans without one come last.', 1)),
    }),
    metadata({ title: 'Plan', description: 'A pricing plan.' }),
  ),
)
