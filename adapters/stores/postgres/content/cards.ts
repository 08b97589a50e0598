import type { ProfileCard } from '../../../../core/model.ts'
import { readCard } from '../../record-text.ts'

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

/**
 * Joins a table `page (slug)` with the profiles and their industries. OFFSET 0 has each profile looked up: to read a
 * hundred, a server would rather read all of some ten thousand.
 */
export const CARD_TABLES = `
  page CROSS JOIN LATERAL (
    SELECT slug, country, industry, published_at, updated_at, card
    FROM partner_api.profile WHERE slug = page.slug OFFSET 0
  ) AS p JOIN partner_api.industry i ON i.slug = p.industry`

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
