import { COUNTRY_MESSAGE, countryName, parseCountryCode } from '../content/iso-codes.ts'
import { Problem } from '../http/problem.ts'
import { oneOf, repeatable, single } from '../http/query.ts'
import { andThen, type MaybePromise } from '../lib/promise.ts'
import { fold, foldWords } from '../lib/text.ts'
import { rfc3339 } from '../lib/time.ts'
import type { Profile, ProfileCard } from '../model.ts'
import type { Grant } from '../policy/decide.ts'
import type { ProfileQuery } from '../ports/directory.ts'
import type { Profile as WireProfile, ProfileCard as WireCard } from '../wire.ts'
import type { HandlerContext } from './context.ts'
import { cursorParameter, limitParameter, readPage } from './paging.ts'
import { defineGet } from './route.ts'

/** The newest profiles that the partner can see. */
export function recentCards(grant: Grant, ports: HandlerContext, limit: number): MaybePromise<WireCard[]> {
  const filters = { words: [], countries: [], industries: [] }
  const query: ProfileQuery = { ...filters, sort: '-published_at', after: undefined, limit }
  const found = ports.directory.listProfiles(grant.partner.slug, query, grant.now)
  return andThen(found, (profiles) => profiles.map(toWireCard))
}

export const recentProfiles = defineGet({
  name: 'recent-profiles',
  path: '/public/profiles/recent',
  scope: 'read:profiles',
  summary: 'List recent profiles',
  parameters: { limit: limitParameter(50, 10) },
  cacheBy: 'content',
  handle: (input, grant, ports) =>
    andThen(recentCards(grant, ports, input.query.limit), (data) => ({ data })),
})

function parseSearch(text: string): string | undefined {
  const length = [...text].length
  return length >= 2 && length <= 100 && foldWords(text).length > 0 ? text : undefined
}

export const directory = defineGet({
  name: 'profiles',
  path: '/public/profiles',
  scope: 'read:profiles',
  summary: 'List profiles',
  parameters: {
    q: single(parseSearch, 'must have 2 to 100 characters, a letter or digit among them', undefined),
    country: repeatable(parseCountryCode, COUNTRY_MESSAGE),
    industry: repeatable((text) => text.length <= 80 ? text : undefined, 'must be an industry slug'),
    sort: single(oneOf(['name', '-published_at']), 'must be name or -published_at', 'name'),
    limit: limitParameter(100, 20),
    cursor: cursorParameter,
  },
  cacheBy: 'content',
  handle: ({ query }, grant, ports) => {
    const filter = {
      words: query.q === undefined ? [] : [...new Set(foldWords(query.q))].sort(),
      countries: [...new Set(query.country)].sort(),
      industries: [...new Set(query.industry)].sort(),
      sort: query.sort,
    }
    return readPage(ports.cursors, query, {
      partner: grant.partner.slug,
      identity: filter,
      read(place, limit) {
        const start = place &&
          { key: query.sort === 'name' ? fold(String(place[0])) : place[0], slug: place[1] }
        return ports.directory.listProfiles(grant.partner.slug, { ...filter, after: start, limit }, grant.now)
      },
      // Folding can make a name 18 times as long, and JSON a control character six times.
      positionOf: ({ name, publishedAt, slug }) => [
        query.sort === 'name' ? name.replace(/\p{Cc}/gu, ' ') : publishedAt,
        slug,
      ],
      present: toWireCard,
    })
  },
})

export const profileDetail = defineGet({
  name: 'profile',
  path: '/public/profiles/:slug',
  scope: 'read:profiles',
  summary: 'Get a profile',
  problems: ['profile_not_found'],
  parameters: {},
  cacheBy: 'content',
  handle: ({ slug }, grant, ports) =>
    andThen(ports.directory.findProfile(grant.partner.slug, slug, grant.now), (profile) => {
      if (profile === undefined) throw new Problem('profile_not_found')
      return { data: toWireProfile(profile) }
    }),
})

function toWireProfile(profile: Profile): WireProfile {
  const { employees, contact } = profile
  return {
    ...toWireCard(profile),
    description: profile.description ?? null,
    website_url: profile.websiteUrl ?? null,
    city: profile.city ?? null,
    founded_year: profile.foundedYear ?? null,
    employees: employees == null ? null : { min: employees.min ?? null, max: employees.max ?? null },
    tags: profile.tags,
    contact: contact == null ? null : { email: contact.email ?? null, phone: contact.phone ?? null },
    links: profile.links.map(({ rel, url }) => ({ rel, url })),
  }
}

export function toWireCard(card: ProfileCard): WireCard {
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
