/** The fields of each kind of content. */
import * as v from 'valibot'
import { formatValue } from '../http/redact.ts'
import type { ContentKind, ContentRecords } from '../ports/content.ts'
import { partRule } from '../lib/schema-rules.ts'
import { cardFields, detailFields, industryFields } from './directory-fields.ts'
import { type Fields, nullable, object, optional, type Schema, withDefault } from './fields.ts'
import { isCurrencyCode } from './iso-codes.ts'
import { LINE } from './line-scalars.ts'
import { ROW } from './row-scalars.ts'
import { type Form, type Scalars, SLUG, type Slugs } from './scalars.ts'

/** What lines may refer to; an absent member is not checked. */
export interface References {
  /** The industries that exist, each with its parent. */
  readonly industries?: ReadonlyMap<string, string | undefined>
  /** Slugs of all partners, also of removed ones: those stay taken, and exports contain them. */
  readonly partners?: Slugs
}

const currencyForm: Form = {
  name: 'the ISO 4217 code of a current currency, in upper case',
  isValid: isCurrencyCode,
}

function findRepeated(slugs: readonly string[]): string | undefined {
  const seen = new Set<string>()
  const repeated = slugs.find((slug) => slug !== undefined && seen.size === seen.add(slug).size)
  return repeated === undefined ? undefined : `must not name ${formatValue(repeated)} twice`
}

/** The fields of each kind of content. @param references What they may refer to. */
function createFields(
  scalar: Scalars,
  references: References,
): { readonly [K in ContentKind]: Fields<ContentRecords[K]> } {
  const card = cardFields(scalar)
  const partner = scalar.reference('a partner', references.partners)
  return {
    profiles: {
      slug: card.slug,
      name: card.name,
      headline: card.headline,
      country: card.country,
      industry: scalar.reference('an industry', references.industries),
      publishedAt: nullable(scalar.instant),
      logoUrl: card.logoUrl,
      ...detailFields(scalar),
      visibleTo: optional(scalar.list(Infinity, partner, findRepeated, 'a list of partner slugs or null')),
    },
    industries: industryFields(scalar),
    plans: {
      slug: scalar.code(SLUG),
      name: scalar.text(200),
      description: scalar.text(5_000),
      price: object({ amountMinor: scalar.integer(0), currency: scalar.code(currencyForm) }),
      interval: scalar.oneOf(['month', 'year', 'once'], 'month, year or once'),
      features: scalar.list(50, scalar.text(200)),
      highlighted: withDefault(scalar.flag, false),
      position: optional(scalar.integer()),
    },
    banners: {
      partner,
      title: scalar.text(200),
      body: optional(scalar.text(5_000)),
      imageUrl: optional(scalar.url),
      imageAlt: optional(scalar.text(500)),
      linkUrl: optional(scalar.url),
      linkLabel: optional(scalar.text(200)),
      startsAt: optional(scalar.instant),
      endsAt: optional(scalar.instant),
    },
  }
}

/** The fields of each kind of content, in the order of an export. */
export const CONTENT_FIELDS = createFields(ROW, {})

/** The schemas of lines. @param references What they may refer to; by default anything. */
export function createLineSchemas(
  references: References,
): { readonly [K in ContentKind]: Schema<ContentRecords[K]> } {
  const { profiles, industries, plans, banners } = createFields(LINE, references)
  return {
    profiles: v.object(profiles),
    industries: v.object(industries),
    plans: v.object(plans),
    banners: v.pipe(
      v.object(banners),
      partRule(({ startsAt = -Infinity, endsAt = Infinity }) =>
        endsAt <= startsAt ? ['must be after starts_at', 'endsAt'] : undefined
      ),
    ),
  }
}
