/** The fields of each kind of content. */
import { formatValue } from '../http/redact.ts'
import type { ContentKind, ContentRecords } from '../ports/content.ts'
import { CARD_FIELDS, DETAIL_FIELDS, INDUSTRY_FIELDS, SLUG, text, URL_TEXT } from './directory-fields.ts'
import { code, type ObjectFormat } from './fields.ts'
import { isCurrencyCode } from './iso-codes.ts'

const absent = undefined
const url = { ...URL_TEXT, absent }
const instant = { type: 'instant', absent } as const
const currency = {
  type: 'code',
  form: ['the ISO 4217 code of a current currency, in upper case', isCurrencyCode],
} as const
const partner = { ...SLUG, refersTo: 'partners' } as const
const { slug, name, headline, country, logoUrl } = CARD_FIELDS

function findRepeated(slugs: readonly string[]): string | undefined {
  const seen = new Set<string>()
  const repeated = slugs.find((slug) => slug !== undefined && seen.size === seen.add(slug).size)
  return repeated === undefined ? undefined : `must not name ${formatValue(repeated)} twice`
}

export const CONTENT_FORMATS: { readonly [K in ContentKind]: ObjectFormat<ContentRecords[K]> } = {
  profiles: {
    type: 'object',
    fields: {
      slug,
      name,
      headline,
      country,
      industry: { ...SLUG, refersTo: 'industries' },
      publishedAt: { ...instant, isNullable: true },
      logoUrl,
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
  industries: { type: 'object', fields: INDUSTRY_FIELDS },
  plans: {
    type: 'object',
    fields: {
      slug: SLUG,
      name,
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
      imageUrl: url,
      imageAlt: { ...text(500), absent },
      linkUrl: url,
      linkLabel: { ...text(200), absent },
      startsAt: instant,
      endsAt: instant,
    },
    check: ({ startsAt = -Infinity, endsAt = Infinity }) =>
      endsAt <= startsAt ? ['must be after starts_at', 'ends_at'] : undefined,
  },
}
