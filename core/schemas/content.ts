import {
  array,
  type GenericSchema,
  metadata,
  nullable,
  object,
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
  describedObject,
  instantSchema,
  integerSchema,
  list,
  namedObject,
  oneOf,
  patternSchema,
  slugSchema,
  textSchema,
  urlSchema,
  WIDGET_PROFILES,
} from './fields.ts'

const cardMembers = {
  slug: slugSchema('Slug of the profile.', 'nordlichter-frachtkontor'),
  name: textSchema('Display name.', 'Nordlichter Frachtkontor', 200),
  headline: textSchema('One line of text.', 'Short-sea freight between Hamburg and the Baltic ports', 300),
  country: pipe(
    object({ code: countrySchema(), name: textSchema('English name.', 'Germany', 200) }),
    metadata({ description: 'Its country.' }),
  ),
  industry: pipe(
    object({
      slug: slugSchema('Slug of the industry.', 'logistics'),
      name: textSchema('Display name.', 'Logistics', 200),
    }),
    metadata({ description: 'Its industry.' }),
  ),
  logo_url: nullable(
    urlSchema('URL of the logo.', 'https://assets.example/logos/nordlichter-frachtkontor.svg'),
  ),
  published_at: instantSchema('When the profile was published.', '2026-03-01T09:00:00.000Z'),
  updated_at: instantSchema('When it last changed.', '2026-03-01T09:00:00.000Z'),
}

export const cardSchema: GenericSchema<unknown, ProfileCard> = namedObject(
  'ProfileCard',
  'A profile in a list.',
  cardMembers,
)

const description = 'Books part-loads on small coasters that call at harbours the big lines skip.'
export const profileSchema: GenericSchema<unknown, Profile> = namedObject('Profile', 'A complete profile.', {
  ...cardMembers,
  description: nullable(textSchema('Long description.', description, 5000)),
  website_url: nullable(urlSchema('URL of the website.', 'https://nordlichter-frachtkontor.example')),
  city: nullable(textSchema('City.', 'Hamburg', 200)),
  founded_year: nullable(countSchema('Year of foundation.', 1974, 9999)),
  employees: nullable(describedObject('Number of employees.', {
    min: nullable(countSchema('Lower bound.', 51)),
    max: nullable(countSchema('Upper bound.', 200)),
  })),
  tags: list('Tags.', 20, textSchema('A tag.', 'short-sea', 50)),
  contact: nullable(describedObject('Contact details.', {
    // What HTML forms and the import accept: `format: email` promises less (RFC 5321 §4.1.2).
    email: nullable(
      patternSchema(
        'E-mail address.',
        'kontor@nordlichter-frachtkontor.example',
        RFC_EMAIL_REGEX.source,
        254,
      ),
    ),
    phone: nullable(textSchema('Phone number.', '+49 40 66969 207', 50)),
  })),
  links: list(
    'Further links.',
    20,
    strictObject({
      rel: textSchema('Purpose of the link.', 'press', 50),
      url: urlSchema('URL of the link.', 'https://nordlichter-frachtkontor.example/press'),
    }),
  ),
})

export const bannerSchema: GenericSchema<unknown, Banner> = namedObject(
  'Banner',
  'The banner of a partner.',
  {
    title: textSchema('Headline.', 'Meet the makers behind the directory', 200),
    body: nullable(textSchema('Text below the headline.', 'Open workshops in twelve countries.', 5000)),
    image_url: nullable(urlSchema('URL of the image.', 'https://assets.example/banners/open-workshops.jpg')),
    image_alt: nullable(
      textSchema(
        'Text for the `alt` attribute of the image.',
        'A weaver at a wooden loom beside a window',
        500,
      ),
    ),
    link_url: nullable(urlSchema('URL of the link.', 'https://demo.example/open-workshops')),
    link_label: nullable(textSchema('Text of the link.', 'Find a workshop', 200)),
    starts_at: nullable(
      instantSchema('When the banner appears; `null` if it already does.', '2026-01-01T00:00:00.000Z'),
    ),
    ends_at: nullable(
      instantSchema('When the banner disappears; `null` if it does not.', '2027-01-01T00:00:00.000Z'),
    ),
    updated_at: instantSchema('When it last changed.', '2026-01-01T00:00:00.000Z'),
  },
)

const countedCountry = namedObject('Country', 'A country with its number of profiles.', {
  code: countrySchema(),
  name: textSchema('Name in the requested language.', 'Germany', 200),
  profile_count: countSchema('Number of profiles that the partner can see.', 12),
})
export const countriesSchema: GenericSchema<unknown, Country[]> = pipe(
  array(countedCountry),
  metadata({ maxItems: COUNTRY_CODES.length }),
)

export const industriesSchema: GenericSchema<unknown, Industry[]> = array(
  namedObject('Industry', 'An industry with its number of profiles.', {
    slug: slugSchema('Slug of the industry.', 'logistics'),
    name: textSchema('Display name.', 'Logistics', 200),
    parent_slug: nullable(slugSchema('Slug of the parent industry.', 'leisure')),
    profile_count: countSchema(
      'Number of profiles that the partner can see, without those of sub-industries.',
      7,
    ),
  }),
)

const moneySchema = namedObject('Money', 'An amount of money.', {
  amount_minor: countSchema('Amount in the minor unit of the currency.', 1900),
  currency: patternSchema('ISO 4217 code.', 'EUR', '^[A-Z]{3}$', 3),
  exponent: countSchema('Decimal digits of the minor unit: 2 for EUR, 0 for JPY, 3 for KWD.', 2, 4),
})

export const plansSchema: GenericSchema<unknown, Plan[]> = array(
  namedObject('Plan', 'A pricing plan.', {
    slug: slugSchema('Slug of the plan.', 'starter'),
    name: textSchema('Display name.', 'Starter', 200),
    description: textSchema('Description.', 'For one site that shows a handful of profiles.', 5000),
    price: moneySchema,
    interval: oneOf('Billing interval.', ['month', 'year', 'once']),
    features: list('Features in display order.', 50, textSchema('A feature.', 'Recent profiles', 200)),
    highlighted: booleanSchema('Whether to highlight the plan.', false),
    position: nullable(integerSchema('Sort position; plans without one come last.', 1)),
  }),
)

export const widgetSchema: GenericSchema<unknown, Widget> = strictObject({
  partner: strictObject({
    slug: slugSchema('Slug of the partner.', 'demo'),
    name: textSchema('Display name.', 'Demo partner', 200),
  }),
  banner: nullable(bannerSchema),
  profiles: list('The newest profiles.', WIDGET_PROFILES, cardSchema),
  countries: countriesSchema,
  industries: industriesSchema,
  plans: plansSchema,
})
