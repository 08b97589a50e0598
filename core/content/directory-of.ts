import type { Profile } from '../model.ts'
import type { Directory } from '../ports.ts'
import { foldWords } from './fold.ts'
import { comparePositions, positionOf, requireProfile } from './own-directory.ts'

/** A public profile, of which all but the members of every card may be left out. */
export type DirectoryRow =
  & Pick<Profile, 'slug' | 'name' | 'headline' | 'country' | 'industry' | 'publishedAt'>
  & Partial<Profile>

/**
 * A directory of a list that fits in memory, visible to every partner. Its industries are those of the rows.
 *
 * @throws {Error} for a row that is not well-formed; the message names its slug and the member.
 * @example
 * ```ts
 * const api = createPartnerApi({ store, directory: directoryOf(rows) })
 * ```
 */
export function directoryOf(rows: readonly DirectoryRow[]): Directory {
  const profiles = rows.map((row): Profile => {
    const profile = { ...absent, updatedAt: row.publishedAt, ...row }
    requireProfile(profile)
    return profile
  })
  const bySlug = new Map(profiles.map((profile) => [profile.slug, profile]))
  const industries = new Map(
    profiles.map(({ industry: { slug, name } }) => [slug, { slug, name, parentSlug: undefined }]),
  )
  const wordsOf = new Map(profiles.map((profile) => {
    const { name, headline, description, tags } = profile
    return [profile, [name, headline, description ?? '', ...tags].flatMap(foldWords)]
  }))
  const inOrder = (sort: 'name' | '-published_at') => {
    const places = profiles.map((profile) => ({ profile, position: positionOf(profile, sort) }))
    return places.sort((a, b) => comparePositions(a.position, b.position))
  }
  const orders = { name: inOrder('name'), '-published_at': inOrder('-published_at') }

  return {
    listProfiles: (_partner, { words, countries, industries, sort, after, limit }, now) =>
      orders[sort].filter(({ profile, position }) =>
        profile.publishedAt <= now &&
        (countries.length === 0 || countries.includes(profile.country)) &&
        (industries.length === 0 || industries.includes(profile.industry.slug)) &&
        words.every((word) => wordsOf.get(profile)!.some((one) => one.startsWith(word))) &&
        (after === undefined || comparePositions(after, position) < 0)
      ).slice(0, limit).map(({ profile }) => profile),
    findProfile(_partner, slug, now) {
      const profile = bySlug.get(slug)
      return profile && profile.publishedAt <= now ? profile : undefined
    },
    countProfiles(_partner, by, now) {
      const counts = new Map<string, number>()
      for (const { publishedAt, country, industry } of profiles) {
        const key = by === 'country' ? country : industry.slug
        if (publishedAt <= now) counts.set(key, (counts.get(key) ?? 0) + 1)
      }
      return counts
    },
    listIndustries: () => [...industries.values()],
    nextProfileChangeAt: (_partner, now) =>
      orders['-published_at'].findLast(({ profile }) => profile.publishedAt > now)?.profile.publishedAt,
    directoryRevision: () => 'unchanging',
  }
}

const absent = {
  logoUrl: undefined,
  description: undefined,
  websiteUrl: undefined,
  city: undefined,
  foundedYear: undefined,
  employees: undefined,
  tags: [],
  contact: undefined,
  links: [],
}
