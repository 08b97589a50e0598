import {
  array,
  boolean,
  check,
  integer,
  maxLength,
  maxValue,
  minValue,
  nullable,
  number,
  object,
  picklist,
  pipe,
  strictObject,
  string,
  toUpperCase,
} from 'valibot'
import { after } from '../after.ts'
import { isCountryCode } from '../content/countries.ts'
import { fold, foldWords } from '../content/fold.ts'
import { repeatable, single } from '../http/parameters.ts'
import { Problem } from '../http/problem.ts'
import type { Profile, ProfileCard } from '../model.ts'
import type { Grant } from '../policy/decide.ts'
import type { MaybePromise, ProfilePosition, ProfileQuery, ProfileSort } from '../ports.ts'
import { VERSION } from '../version.ts'
import { cardMembers, presentCard, type WireCard } from './card.ts'
import { defineRoute, type HandlerPorts, type Route } from './route.ts'

const cards = array(strictObject(cardMembers))
const wholeNumber = (max: number) => {
  const message = `must be an integer from 1 to ${max}`
  return pipe(number(message), integer(message), minValue(1, message), maxValue(max, message))
}

/** The newest profiles of a partner's public set. */
export function newestCards(grant: Grant, ports: HandlerPorts, limit: number): MaybePromise<WireCard[]> {
  const query: ProfileQuery = {
    words: [],
    countries: [],
    industries: [],
    sort: '-published_at',
    after: undefined,
    limit,
  }
  const found = ports.directory.listProfiles(grant.partner.slug, query, grant.now)
  return after(found, (profiles) => profiles.map(presentCard))
}

export const recentProfiles: Route = defineRoute({
  name: 'recent-profiles',
  access: 'key',
  method: 'GET',
  path: '/public/profiles/recent',
  scope: 'read:profiles',
  summary: 'Recent public profiles',
  parameters: { limit: single('integer', wholeNumber(50), 10, 'How many profiles') },
  reply: object({ data: cards }),
  limits: ['key'],
  dependsOn: 'content',
  handle: (input, grant, ports) => after(newestCards(grant, ports, input.query.limit), (data) => ({ data })),
})

const searchMessage = 'must have 2 to 100 characters, a letter or digit among them'
const countryMessage = 'must be an assigned ISO 3166-1 alpha-2 code'
const countryCode = pipe(string(), toUpperCase(), check(isCountryCode, countryMessage))
const searchText = pipe(
  string(),
  check((text) => {
    const length = [...text].length
    return length >= 2 && length <= 100 && foldWords(text).length > 0
  }, searchMessage),
)

export const directory: Route = defineRoute({
  name: 'directory',
  access: 'key',
  method: 'GET',
  path: '/public/profiles',
  scope: 'read:profiles',
  summary: 'Filtered partner directory',
  parameters: {
    q: single(
      'text',
      searchText,
      undefined,
      'Words that must start a word of name, headline, description or tags',
    ),
    country: repeatable(countryCode, 'ISO 3166-1 alpha-2, in either case: any of these'),
    industry: repeatable(
      pipe(string(), maxLength(80, 'must be an industry slug')),
      'Industry slug: any of these',
    ),
    sort: single(
      'text',
      picklist(['name', '-published_at'], 'must be name or -published_at'),
      'name',
      'The order: by name, or newest first',
    ),
    limit: single('integer', wholeNumber(100), 20, 'How many profiles a page has'),
    cursor: single('text', string(), undefined, 'next_cursor of the page before'),
  },
  reply: object({
    data: cards,
    page: strictObject({ limit: number(), has_more: boolean(), next_cursor: nullable(string()) }),
  }),
  limits: ['key'],
  dependsOn: 'content',
  handle: ({ query }, grant, ports) => {
    const filter = {
      words: [...new Set(foldWords(query.q ?? ''))].sort(),
      countries: [...new Set(query.country)].sort(),
      industries: [...new Set(query.industry)].sort(),
      sort: query.sort,
    }
    const bound = JSON.stringify([VERSION, grant.partner.slug, filter])
    const position = query.cursor === undefined ? undefined : ports.cursors.open(bound, query.cursor)
    if (query.cursor !== undefined && position === undefined) throw new Problem('invalid_cursor')
    const [key, slug] = position ?? []
    const start = key === undefined || slug === undefined ? undefined : { key, slug: String(slug) }
    const found = ports.directory.listProfiles(
      grant.partner.slug,
      { ...filter, after: start, limit: query.limit + 1 },
      grant.now,
    )
    return after(found, (profiles) => {
      const shown = profiles.slice(0, query.limit)
      const last = profiles.length > query.limit ? shown.at(-1) : undefined
      const next = last === undefined ? null : ports.cursors.seal(bound, positionOf(last, query.sort))
      return {
        data: shown.map(presentCard),
        page: { limit: query.limit, has_more: next !== null, next_cursor: next },
      }
    })
  },
})

function positionOf(profile: ProfileCard, sort: ProfileSort): [ProfilePosition['key'], string] {
  return [sort === 'name' ? fold(profile.name) : profile.publishedAt, profile.slug]
}

export const profileDetail: Route = defineRoute({
  name: 'profile-detail',
  access: 'key',
  method: 'GET',
  path: '/public/profiles/:slug',
  scope: 'read:profiles',
  summary: 'Protected profile detail',
  parameters: {},
  reply: object({
    data: strictObject({
      ...cardMembers,
      description: nullable(string()),
      website_url: nullable(string()),
      city: nullable(string()),
      founded_year: nullable(number()),
      employees: nullable(strictObject({ min: nullable(number()), max: nullable(number()) })),
      tags: array(string()),
      contact: nullable(strictObject({ email: nullable(string()), phone: nullable(string()) })),
      links: array(strictObject({ rel: string(), url: string() })),
    }),
  }),
  limits: ['key'],
  dependsOn: 'content',
  handle: ({ slug }, grant, ports) =>
    after(ports.directory.findProfile(grant.partner.slug, slug, grant.now), (profile) => {
      if (profile === undefined) throw new Problem('profile_not_found')
      return { data: presentProfile(profile) }
    }),
})

function presentProfile(profile: Profile) {
  const { employees, contact } = profile
  return {
    ...presentCard(profile),
    description: profile.description ?? null,
    website_url: profile.websiteUrl ?? null,
    city: profile.city ?? null,
    founded_year: profile.foundedYear ?? null,
    employees: employees === undefined ? null : { min: employees.min ?? null, max: employees.max ?? null },
    tags: profile.tags,
    contact: contact === undefined ? null : { email: contact.email ?? null, phone: contact.phone ?? null },
    links: profile.links.map(({ rel, url }) => ({ rel, url })),
  }
}
