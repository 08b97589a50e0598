import { countryName } from '../content/countries.ts'
import { rfc3339 } from '../http/time.ts'
import type { ProfileCard } from '../model.ts'
import type { ProfileCard as WireCard } from '../wire.ts'

/** Writes a card as the wire has it. */
export function presentCard(card: ProfileCard): WireCard {
  return {
    slug: card.slug,
    name: card.name,
    headline: card.headline,
    country: { code: card.country, name: countryName(card.country, 'en') },
    industry: { slug: card.industry.slug, name: card.industry.name },
    logo_url: card.logoUrl ?? null,
    published_at: rfc3339(card.publishedAt),
    updated_at: rfc3339(card.updatedAt),
  }
}
