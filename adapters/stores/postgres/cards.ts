import type { ProfileCard } from '../../../core/model.ts'
import { readCard } from '../record-text.ts'

/** A row of `CARD_COLUMNS`. */
export type CardRow = [
  slug: string,
  country: string,
  industry: string,
  industryName: string,
  publishedAt: number,
  updatedAt: number,
  card: string,
]

/** What a card is made of, of a profile `p` and its industry `i`. */
export const CARD_COLUMNS = 'p.slug, p.country, p.industry, i.name, p.published_at, p.updated_at, p.card'

/** Joins a table `page (slug)` with the profiles and their industries. */
export const CARD_TABLES =
  'page JOIN partner_api.profile p ON p.slug = page.slug JOIN partner_api.industry i ON i.slug = p.industry'

export function readCardRow(
  [slug, country, industry, industryName, publishedAt, updatedAt, text]: CardRow,
): ProfileCard {
  const { name, headline, logoUrl } = readCard(text)
  return {
    slug,
    name,
    headline,
    country,
    industry: { slug: industry, name: industryName },
    logoUrl,
    publishedAt,
    updatedAt,
  }
}
