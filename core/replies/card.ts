import { type GenericSchema, metadata, nullable, object, pipe, strictObject } from 'valibot'
import type { ProfileCard } from '../wire.ts'
import { countryShape, instantShape, slugShape, textShape, urlShape } from './shapes.ts'

/** The members of a card, for the schemas of answers that hold one. */
export const cardMembers: {
  readonly [Member in keyof ProfileCard]: GenericSchema<unknown, ProfileCard[Member]>
} = {
  slug: slugShape('What the profile is addressed by.', 'nordlichter-frachtkontor'),
  name: textShape('Name to show.', 'Nordlichter Frachtkontor', 200),
  headline: textShape('One line about it.', 'Short-sea freight between Hamburg and the Baltic ports', 300),
  country: pipe(
    object({
      code: countryShape(),
      name: textShape('English name.', 'Germany', 200),
    }),
    metadata({ description: 'The country that it is in.' }),
  ),
  industry: pipe(
    object({
      slug: slugShape('What the industry is addressed by.', 'logistics'),
      name: textShape('Name to show.', 'Logistics', 200),
    }),
    metadata({ description: 'The industry that it belongs to.' }),
  ),
  logo_url: nullable(
    urlShape('Where its logo is.', 'https://assets.example/logos/nordlichter-frachtkontor.svg'),
  ),
  published_at: instantShape('When it became public.', '2026-03-01T09:00:00.000Z'),
  updated_at: instantShape('When any of it changed last.', '2026-03-01T09:00:00.000Z'),
}

/** A card. */
export const cardShape: GenericSchema<unknown, ProfileCard> = pipe(
  strictObject(cardMembers),
  metadata({ title: 'ProfileCard', description: 'A profile as lists show it.' }),
)
