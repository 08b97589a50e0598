import {
  array,
  type GenericSchema,
  metadata,
  nullable,
  object,
  picklist,
  pipe,
  RFC_EMAIL_REGEX,
  strictObject,
} from 'valibot'
import { COUNTRY_CODES } from '../content/iso-codes.ts'
import type { Banner, Country, Industry, Plan, Profile, ProfileCard, Widget } from '../wire.ts'
import {
  booleanSchema,
  countrySchema,
  countSchema,
  instantSchema,
  integerSchema,
  patternSchema,
  slugSchema,
  textSchema,
  urlSchema,
  WIDGET_PROFILES,
} from './fields.ts'

/** The members of a card, for the schemas of answers that hold one. */
export const cardMembers: {
  readonly [Member in keyof ProfileCard]: GenericSchema<unknown, ProfileCard[Member]>
} = {
  slug: slugSchema('What the profile is addressed by.', 'nordlichter-frachtkontor'),
  name: textSchema('Name to show.', 'Nordlichter Frachtkontor', 200),
  headline: textSchema('One line about it.', 'Short-sea freight between Hamburg and the Baltic ports', 300),
  country: pipe(
    object({
      code: countrySchema(),
      name: textSchema('English name.', 'Germany', 200),
    }),
    metadata({ description: 'The country that it is in.' }),
  ),
  industry: pipe(
    object({
      slug: slugSchema('What the industry is addressed by.', 'logistics'),
      name: textSchema('Name to show.', 'Logistics', 200),
    }),
    metadata({ description: 'The industry that it belongs to.' }),
  ),
  logo_url: nullable(
    urlSchema('Where its logo is.', 'https://assets.example/logos/nordlichter-frachtkontor.svg'),
  ),
  published_at: instantSchema('When it became public.', '2026-03-01T09:00:00.000Z'),
  updated_at: instantSchema('When any of it changed last.', '2026-03-01T09:00:00.000Z'),
}

/** A card. */
export const cardSchema: GenericSchema<unknown, ProfileCard> = pipe(
  strictObject(cardMembers),
  metadata({ title: 'ProfileCard', description: 'A profile as lists show it.' }),
)

/** All that is public of a profile. */
export const profileSchema: GenericSchema<unknown, Profile> = pipe(
  strictObject({
    ...cardMembers,
    description: nullable(
      textSchema(
        'What it says of itself.',
        'Books part-loads on small coasters that call at harbours the big lines skip.',
        5000,
      ),
    ),
    website_url: nullable(urlSchema('Its website.', 'https://nordlichter-frachtkontor.example')),
    city: nullable(textSchema('The place that it is in.', 'Hamburg', 200)),
    founded_year: nullable(countSchema('The year that it began in.', 1974, 9999)),
    employees: nullable(pipe(
      strictObject({
        min: nullable(countSchema('At least so many.', 51)),
        max: nullable(countSchema('At most so many.', 200)),
      }),
      metadata({ description: 'How many people work there.' }),
    )),
    tags: pipe(
      array(textSchema('One word for it.', 'short-sea', 50)),
      metadata({ description: 'Words for it.', maxItems: 20 }),
    ),
    contact: nullable(pipe(
      strictObject({
        // What HTML forms take (and the import): `format: email` promises less (RFC 5321 §4.1.2).
        email: nullable(
          patternSchema(
            'Address for mail.',
            'kontor@nordlichter-frachtkontor.example',
            RFC_EMAIL_REGEX.source,
            254,
          ),
        ),
        phone: nullable(textSchema('Number to call.', '+49 40 66969 207', 50)),
      }),
      metadata({ description: 'How to reach it.' }),
    )),
    links: pipe(
      array(strictObject({
        rel: textSchema('What the link is for.', 'press', 50),
        url: urlSchema('Where it leads.', 'https://nordlichter-frachtkontor.example/press'),
      })),
      metadata({ description: 'More of it elsewhere.', maxItems: 20 }),
    ),
  }),
  metadata({ title: 'Profile', description: 'All that is public of a profile.' }),
)

/** Schema of a banner on the wire. */
export const bannerSchema: GenericSchema<unknown, Banner> = pipe(
  strictObject({
    title: textSchema('What it says.', 'Meet the makers behind the directory', 200),
    body: nullable(textSchema('What it says below that.', 'Open workshops in twelve countries.', 5000)),
    image_url: nullable(urlSchema('Its picture.', 'https://assets.example/banners/open-workshops.jpg')),
    image_alt: nullable(
      textSchema('The picture in words: goes into `alt`.', 'A weaver at a wooden loom beside a window', 500),
    ),
    link_url: nullable(urlSchema('Where it leads.', 'https://demo.example/open-workshops')),
    link_label: nullable(textSchema('What the link says.', 'Find a workshop', 200)),
    starts_at: nullable(instantSchema('First instant at which it shows.', '2026-01-01T00:00:00.000Z')),
    ends_at: nullable(instantSchema('Instant from which it shows no more.', '2027-01-01T00:00:00.000Z')),
    updated_at: instantSchema('When any of it changed last.', '2026-01-01T00:00:00.000Z'),
  }),
  metadata({ title: 'Banner', description: 'The banner of a partner.' }),
)

/** Schema of the countries on the wire. */
export const countriesSchema: GenericSchema<unknown, Country[]> = pipe(
  array(
    pipe(
      strictObject({
        code: countrySchema(),
        name: textSchema('Name in the language asked for.', 'Germany', 200),
        profile_count: countSchema('How many profiles the partner can see there.', 12),
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
export const industriesSchema: GenericSchema<unknown, Industry[]> = array(
  pipe(
    strictObject({
      slug: slugSchema('What the industry is addressed by.', 'logistics'),
      name: textSchema('Name to show.', 'Logistics', 200),
      parent_slug: nullable(slugSchema('The industry that this one is a part of.', 'leisure')),
      profile_count: countSchema('How many profiles are in it, those in its parts not counted.', 7),
    }),
    metadata({
      title: 'Industry',
      description: 'An industry with the profiles that the partner can see in it.',
    }),
  ),
)

/** Schema of the plans on the wire. */
export const plansSchema: GenericSchema<unknown, Plan[]> = array(
  pipe(
    strictObject({
      slug: slugSchema('What the plan is addressed by.', 'starter'),
      name: textSchema('Name to show.', 'Starter', 200),
      description: textSchema('What it is for.', 'For one site that shows a handful of profiles.', 5000),
      price: pipe(
        strictObject({
          amount_minor: countSchema('Amount in the minor unit of the currency.', 1900),
          currency: patternSchema('ISO 4217.', 'EUR', '^[A-Z]{3}$', 3),
          exponent: countSchema('Digits of the minor unit: 2 for EUR, 0 for JPY, 3 for KWD.', 2, 4),
        }),
        metadata({ title: 'Money', description: 'An amount of money, in integers only.' }),
      ),
      interval: pipe(
        picklist(['month', 'year', 'once']),
        metadata({ description: 'How often the price is due.', examples: ['month'] }),
      ),
      features: pipe(
        array(textSchema('One thing that it has.', 'Recent profiles', 200)),
        metadata({ description: 'What it has, in order.', maxItems: 50 }),
      ),
      highlighted: booleanSchema('Whether it is the one to point at.', false),
      position: nullable(integerSchema('Its place; plans without one come last.', 1)),
    }),
    metadata({ title: 'Plan', description: 'A pricing plan.' }),
  ),
)

/** All that a widget draws. */
export const widgetSchema: GenericSchema<unknown, Widget> = strictObject({
  partner: strictObject({
    slug: slugSchema('What the partner is addressed by.', 'demo'),
    name: textSchema('Name to show.', 'Demo partner', 200),
  }),
  banner: nullable(bannerSchema),
  profiles: pipe(
    array(cardSchema),
    metadata({ description: 'The newest profiles.', maxItems: WIDGET_PROFILES }),
  ),
  countries: countriesSchema,
  industries: industriesSchema,
  plans: plansSchema,
})
