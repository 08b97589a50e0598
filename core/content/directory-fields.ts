/** The fields of profiles and industries. Apart from those of other kinds, which services without imports do not load. */
import { SLUG_PATTERN } from '../lib/text.ts'
import type { Industry, Profile, ProfileCard } from '../model.ts'
import type { Fields } from './fields.ts'
import { isCountryCode } from './iso-codes.ts'

const absent = undefined

export const SLUG = {
  type: 'code',
  noun: 'a slug',
  form: [
    'a slug (1–80 of a-z, 0-9 and -, a letter or digit first)',
    (text: string) => SLUG_PATTERN.test(text),
  ],
} as const

/** `recent` is the path of the newest profiles. */
const profileSlug = {
  ...SLUG,
  noun: 'a slug other than "recent"',
  form: [
    `${SLUG.form[0]} other than "recent"`,
    (text: string) => text !== 'recent' && SLUG_PATTERN.test(text),
  ],
} as const

export const text = (max: number) => ({ type: 'text', max }) as const

export const URL_TEXT = { ...text(2_048), form: 'url' } as const
const name = text(200)
const email = { ...text(254), form: 'email' } as const

/** A profile in a list. */
export const CARD_FIELDS: Fields<ProfileCard> = {
  slug: profileSlug,
  name,
  headline: text(300),
  country: { type: 'code', form: ['an ISO 3166-1 alpha-2 code or XK, in upper case', isCountryCode] },
  industry: { type: 'object', fields: { slug: SLUG, name } },
  logoUrl: { ...URL_TEXT, absent },
  publishedAt: { type: 'instant' },
  updatedAt: { type: 'instant' },
}

/** What only the profile itself shows. */
export const DETAIL_FIELDS: Fields<Omit<Profile, keyof ProfileCard>> = {
  description: { ...text(5_000), absent },
  websiteUrl: { ...URL_TEXT, absent },
  city: { ...text(200), absent },
  foundedYear: { type: 'integer', min: 1, max: 9_999, absent },
  employees: {
    type: 'object',
    fields: { min: { type: 'integer', min: 0, absent }, max: { type: 'integer', min: 0, absent } },
    check: ({ min = 0, max = min }) => max < min ? ['must be at least min', 'max'] : undefined,
    absent,
  },
  tags: { type: 'list', max: 20, item: text(50), absent: [] },
  contact: {
    type: 'object',
    fields: { email: { ...email, absent }, phone: { ...text(50), absent } },
    absent,
  },
  links: {
    type: 'list',
    max: 20,
    item: { type: 'object', fields: { rel: text(50), url: URL_TEXT } },
    absent: [],
  },
}

/** Whether the parent exists is known only after the last line of an import. */
export const INDUSTRY_FIELDS: Fields<Industry> = { slug: SLUG, name, parentSlug: { ...SLUG, absent } }
