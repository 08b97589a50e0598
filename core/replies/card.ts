import { type GenericSchema, metadata, nullable, object, pipe, strictObject } from 'valibot'
import type { WireCard } from '../routes/card.ts'
import { formShape, instantShape, slugShape, textShape, urlShape } from './shapes.ts'

/** The members of a card, for the schemas of answers that hold one. */
export const cardMembers: { readonly [Member in keyof WireCard]: GenericSchema<unknown, WireCard[Member]> } =
  {
    slug: slugShape('What the profile is addressed by.', 'nordlicht-reisen'),
    name: textShape('Name to show.', 'Nordlicht Reisen', 200),
    headline: textShape('One line about it.', 'Slow journeys to the far north', 300),
    country: pipe(
      object({
        code: formShape('ISO 3166-1 alpha-2, or `XK`.', 'DE', '^[A-Z]{2}$', 2),
        name: textShape('English name.', 'Germany', 200),
      }),
      metadata({ description: 'The country that it is in.' }),
    ),
    industry: pipe(
      object({
        slug: slugShape('What the industry is addressed by.', 'travel'),
        name: textShape('Name to show.', 'Travel', 200),
      }),
      metadata({ description: 'The industry that it belongs to.' }),
    ),
    logo_url: nullable(urlShape('Where its logo is.', 'https://assets.example/logos/nordlicht-reisen.svg')),
    published_at: instantShape('When it became public.', '2026-03-01T09:00:00.000Z'),
    updated_at: instantShape('When any of it changed last.', '2026-03-01T09:00:00.000Z'),
  }

/** A card. */
export const cardShape: GenericSchema<unknown, WireCard> = pipe(
  strictObject(cardMembers),
  metadata({ title: 'ProfileCard', description: 'A profile as lists show it.' }),
)
