/** The fields of each kind of content. */
import { formatValue } from '../http/redact.ts'
import { EMAIL_PATTERN } from '../lib/text.ts'
import type { Profile, ProfileCard } from '../model.ts'
import type { ContentKind, ContentRecords } from '../ports/content.ts'
import { code, type Fields, type ObjectFormat, SLUG } from './fields.ts'
import { isCountryCode, isCurrencyCode } from './iso-codes.ts'

const text = (max: number) => ({ type: 'text', max }) as const
const email = {
  ...text(254),
  form: ['an e-mail address', (text: string) => EMAIL_PATTERN.test(text)],
} as const
/** Kept as written. The URL parser drops white space and control characters, and accepts missing slashes. */
const url = {
  ...text(2_048),
  form: [
    'an absolute http or https URL',
    (text: string) => /^https?:\/\/[^\s\p{Cc}]+$/iu.test(text) && URL.canParse(text),
  ],
} as const
const country = {
  type: 'code',
  form: ['an ISO 3166-1 alpha-2 code or XK, in upper case', isCountryCode],
} as const
const currency = {
  type: 'code',
  form: ['the ISO 4217 code of a current currency, in upper case', isCurrencyCode],
} as const
const instant = { type: 'instant' } as const
const partner = { ...SLUG, refersTo: 'partners' } as const
const absent = undefined

function findRepeated(slugs: readonly string[]): string | undefined {
  const seen = new Set<string>()
  const repeated = slugs.find((slug) => seen.size === seen.add(slug).size)
  return repeated === undefined ? undefined : `must not name ${formatValue(repeated)} twice`
}

/** A profile by itself: stores keep `CARD_FIELDS` and `DETAIL_FIELDS` as JSON, and the other members in columns. */
export const CARD_FIELDS: Fields<Pick<Profile, 'name' | 'headline' | 'logoUrl'>> = {
  name: text(200),
  headline: text(300),
  logoUrl: { ...url, absent },
}

/** What only the profile itself shows. */
export const DETAIL_FIELDS: Fields<Omit<Profile, keyof ProfileCard>> = {
  description: { ...text(5_000), absent },
  websiteUrl: { ...url, absent },
  city: { ...text(200), absent },
  foundedYear: { type: 'integer', min: 1, max: 9_999, absent },
  employees: {
    type: 'object',
    fields: { min: { type: 'integer', min: 0, absent }, max: { type: 'integer', min: 0, absent } },
    order: ['max', 'at least', 'min'],
    absent,
  },
  tags: { type: 'list', max: 20, item: text(50), absent: [] },
  contact: {
    type: 'object',
    fields: { email: { ...email, absent }, phone: { ...text(50), absent } },
    absent,
  },
  links: { type: 'list', max: 20, item: { type: 'object', fields: { rel: text(50), url } }, absent: [] },
}

const recentError = (slug: string) =>
  slug === 'recent' ? 'must not be "recent", the path of the newest profiles' : undefined

export const CONTENT_FORMATS: { readonly [K in ContentKind]: ObjectFormat<ContentRecords[K]> } = {
  profiles: {
    type: 'object',
    fields: {
      slug: { ...SLUG, check: recentError },
      name: CARD_FIELDS.name,
      headline: CARD_FIELDS.headline,
      country,
      industry: { ...SLUG, refersTo: 'industries' },
      publishedAt: { ...instant, absent, isNullable: true },
      logoUrl: CARD_FIELDS.logoUrl,
      ...DETAIL_FIELDS,
      visibleTo: {
        type: 'list',
        noun: 'a list of partner slugs or null',
        item: partner,
        check: findRepeated,
        absent,
      },
    },
  },
  industries: {
    type: 'object',
    // Whether the parent exists is known only after the last line.
    fields: { slug: SLUG, name: text(200), parentSlug: { ...SLUG, absent } },
  },
  plans: {
    type: 'object',
    fields: {
      slug: SLUG,
      name: text(200),
      description: text(5_000),
      price: { type: 'object', fields: { amountMinor: { type: 'integer', min: 0 }, currency } },
      interval: code('month, year or once', (text) => /^(?:month|year|once)$/.test(text)),
      features: { type: 'list', max: 50, item: text(200) },
      highlighted: { type: 'flag', absent: false },
      position: { type: 'integer', absent },
    },
  },
  banners: {
    type: 'object',
    fields: {
      partner,
      title: text(200),
      body: { ...text(5_000), absent },
      imageUrl: { ...url, absent },
      imageAlt: { ...text(500), absent },
      linkUrl: { ...url, absent },
      linkLabel: { ...text(200), absent },
      startsAt: { ...instant, absent },
      endsAt: { ...instant, absent },
    },
    order: ['endsAt', 'after', 'startsAt'],
  },
}
