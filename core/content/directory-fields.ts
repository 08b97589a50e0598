/**
 * The fields of profiles and industries. Those of other kinds are in another file, which services without imports do
 * not load.
 */
import type { Industry, Profile, ProfileCard } from '../model.ts'
import { type Fields, object, optional, withDefault } from './fields.ts'
import { COUNTRY, PROFILE_SLUG, type Scalars, SLUG } from './scalars.ts'

/** A profile in a list. */
export function cardFields(scalar: Scalars): Fields<ProfileCard> {
  return {
    slug: scalar.code(PROFILE_SLUG),
    name: scalar.text(200),
    headline: scalar.text(300),
    country: scalar.code(COUNTRY),
    industry: object({ slug: scalar.code(SLUG), name: scalar.text(200) }),
    logoUrl: optional(scalar.url),
    publishedAt: scalar.instant,
    updatedAt: scalar.instant,
  }
}

/** What only the profile itself shows. */
export function detailFields(scalar: Scalars): Fields<Omit<Profile, keyof ProfileCard>> {
  const headcount = optional(scalar.integer(0))
  return {
    description: optional(scalar.text(5_000)),
    websiteUrl: optional(scalar.url),
    city: optional(scalar.text(200)),
    foundedYear: optional(scalar.integer(1, 9_999)),
    employees: optional(scalar.checked(
      object({ min: headcount, max: headcount }),
      ({ min = 0, max = min }) => max < min ? ['must be at least min', 'max'] : undefined,
    )),
    tags: withDefault(scalar.list(20, scalar.text(50)), []),
    contact: optional(object({ email: optional(scalar.email), phone: optional(scalar.text(50)) })),
    links: withDefault(scalar.list(20, object({ rel: scalar.text(50), url: scalar.url })), []),
  }
}

/** Whether the parent exists is known only after the last line of an import. */
export function industryFields(scalar: Scalars): Fields<Industry> {
  return {
    slug: scalar.code(SLUG),
    name: scalar.text(200),
    parentSlug: optional(scalar.code(SLUG)),
  }
}
