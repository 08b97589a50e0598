import * as v from 'valibot'
import { COUNTRY_CODES } from '../content/iso-codes.ts'
import { EMAIL_PATTERN } from '../content/scalars.ts'
import type { Banner, Country, Industry, Plan, Profile, ProfileCard, Widget } from '../wire.ts'
import * as field from './fields.ts'

const displayName = (example: string) => field.text('Display name.', example, 200)

const cardMembers = {
  slug: field.slug('Slug of the profile.', 'nordlichter-frachtkontor'),
  name: displayName('Nordlichter Frachtkontor'),
  headline: field.text('One line of text.', 'Short-sea freight between Hamburg and the Baltic ports', 300),
  country: v.pipe(
    v.object({ code: field.country(), name: field.text('English name.', 'Germany', 200) }),
    v.metadata({ description: 'Its country.' }),
  ),
  industry: v.pipe(
    v.object({ slug: field.slug('Slug of the industry.', 'logistics'), name: displayName('Logistics') }),
    v.metadata({ description: 'Its industry.' }),
  ),
  logo_url: v.nullable(
    field.url('URL of the logo.', 'https://assets.example/logos/nordlichter-frachtkontor.svg'),
  ),
  published_at: field.instant('When the profile was published.', '2026-03-01T09:00:00.000Z'),
  updated_at: field.instant('When it last changed.', '2026-03-01T09:00:00.000Z'),
}

export const cardSchema: field.Schema<ProfileCard> = field.named(
  'ProfileCard',
  'A profile in a list.',
  cardMembers,
)

const description = 'Books part-loads on small coasters that call at harbours the big lines skip.'
// What HTML forms and the import accept: `format: email` promises less (RFC 5321 §4.1.2).
const emailKeywords = { pattern: EMAIL_PATTERN.source }

export const profileSchema: field.Schema<Profile> = field.named('Profile', 'A complete profile.', {
  ...cardMembers,
  description: v.nullable(field.text('Long description.', description, 5000)),
  website_url: v.nullable(field.url('URL of the website.', 'https://nordlichter-frachtkontor.example')),
  city: v.nullable(field.text('City.', 'Hamburg', 200)),
  founded_year: v.nullable(field.count('Year of foundation.', 1974, 9999)),
  employees: v.nullable(field.object('Number of employees.', {
    min: v.nullable(field.count('Lower bound.', 51)),
    max: v.nullable(field.count('Upper bound.', 200)),
  })),
  tags: field.list('Tags.', 20, field.text('A tag.', 'short-sea', 50)),
  contact: v.nullable(field.object('Contact details.', {
    email: v.nullable(
      field.text('E-mail address.', 'kontor@nordlichter-frachtkontor.example', 254, emailKeywords),
    ),
    phone: v.nullable(field.text('Phone number.', '+49 40 66969 207', 50)),
  })),
  links: field.list(
    'Further links.',
    20,
    v.strictObject({
      rel: field.text('Purpose of the link.', 'press', 50),
      url: field.url('URL of the link.', 'https://nordlichter-frachtkontor.example/press'),
    }),
  ),
})

const alt = 'A weaver at a wooden loom beside a window'
export const bannerSchema: field.Schema<Banner> = field.named('Banner', 'The banner of a partner.', {
  title: field.text('Headline.', 'Meet the makers behind the directory', 200),
  body: v.nullable(field.text('Text below the headline.', 'Open workshops in twelve countries.', 5000)),
  image_url: v.nullable(field.url('URL of the image.', 'https://assets.example/banners/open-workshops.jpg')),
  image_alt: v.nullable(field.text('Text for the `alt` attribute of the image.', alt, 500)),
  link_url: v.nullable(field.url('URL of the link.', 'https://demo.example/open-workshops')),
  link_label: v.nullable(field.text('Text of the link.', 'Find a workshop', 200)),
  starts_at: v.nullable(
    field.instant('When the banner appears; `null` if it already does.', '2026-01-01T00:00:00.000Z'),
  ),
  ends_at: v.nullable(
    field.instant('When the banner disappears; `null` if it does not.', '2027-01-01T00:00:00.000Z'),
  ),
  updated_at: field.instant('When it last changed.', '2026-01-01T00:00:00.000Z'),
})

const countedCountry = field.named('Country', 'A country with its number of profiles.', {
  code: field.country(),
  name: field.text('Name in the requested language.', 'Germany', 200),
  profile_count: field.count('Number of profiles that the partner can see.', 12),
})
export const countriesSchema: field.Schema<Country[]> = v.pipe(
  v.array(countedCountry),
  v.metadata({ maxItems: COUNTRY_CODES.length }),
)

const counted = 'Number of profiles that the partner can see, without those of sub-industries.'
export const industriesSchema: field.Schema<Industry[]> = v.array(
  field.named('Industry', 'An industry with its number of profiles.', {
    slug: field.slug('Slug of the industry.', 'logistics'),
    name: displayName('Logistics'),
    parent_slug: v.nullable(field.slug('Slug of the parent industry.', 'leisure')),
    profile_count: field.count(counted, 7),
  }),
)

const moneySchema = field.named('Money', 'An amount of money.', {
  amount_minor: field.count('Amount in the minor unit of the currency.', 1900),
  currency: field.text('ISO 4217 code.', 'EUR', 3, { pattern: '^[A-Z]{3}$' }),
  exponent: field.count('Decimal digits of the minor unit: 2 for EUR, 0 for JPY, 3 for KWD.', 2, 4),
})

export const plansSchema: field.Schema<Plan[]> = v.array(
  field.named('Plan', 'A pricing plan.', {
    slug: field.slug('Slug of the plan.', 'starter'),
    name: displayName('Starter'),
    description: field.text('Description.', 'For one site that shows a handful of profiles.', 5000),
    price: moneySchema,
    interval: field.oneOf('Billing interval.', ['month', 'year', 'once']),
    features: field.list('Features in display order.', 50, field.text('A feature.', 'Recent profiles', 200)),
    highlighted: field.flag('Whether to highlight the plan.', false),
    position: v.nullable(field.integer('Sort position; plans without one come last.', 1)),
  }),
)

export const widgetSchema: field.Schema<Widget> = v.strictObject({
  partner: v.strictObject({
    slug: field.slug('Slug of the partner.', 'demo'),
    name: displayName('Demo partner'),
  }),
  banner: v.nullable(bannerSchema),
  profiles: field.list('The newest profiles.', 6, cardSchema),
  countries: countriesSchema,
  industries: industriesSchema,
  plans: plansSchema,
})
