import { countryName } from '../content/countries.ts'
import { rfc3339 } from '../http/time.ts'
import type { ProfileCard } from '../model.ts'

/** A profile as lists show it. */
export interface WireCard {
  readonly slug: string
  readonly name: string
  readonly headline: string
  readonly country: { readonly code: string; readonly name: string }
  readonly industry: { readonly slug: string; readonly name: string }
  readonly logo_url: string | null
  readonly published_at: string
  readonly updated_at: string
}

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
