import {
  array,
  check,
  integer,
  maxLength,
  maxValue,
  metadata,
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
import { parseCountryCode } from '../content/countries.ts'
import { fold, foldWords } from '../content/fold.ts'
import { repeatable, single } from '../http/parameters.ts'
import { Problem } from '../http/problem.ts'
import type { Profile, ProfileCard } from '../model.ts'
import type { Grant } from '../policy/decide.ts'
import type { MaybePromise, ProfilePosition, ProfileQuery, ProfileSort } from '../ports.ts'
import { VERSION } from '../version.ts'
import { cardMembers, cardShape, presentCard, type WireCard } from './card.ts'
import { cursorParameter, pageShape } from './paging.ts'
import { defineRoute, type HandlerPorts, type Route } from './route.ts'
import { countShape, textShape, urlShape } from './shapes.ts'

const cards = (max: number) => pipe(array(cardShape), metadata({ maxItems: max }))
const wholeNumber = (max: number) => {
  const message = `must be an integer from 1 to ${max}`
  return pipe(
    number(message),
    integer(message),
    minValue(1, message),
    maxValue(max, message),
    metadata({ format: 'int32', examples: [Math.min(max, 20)] }),
  )
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
  description: 'The newest profiles first.',
  parameters: { limit: single('integer', wholeNumber(50), 10, 'How many profiles') },
  reply: object({ data: cards(50) }),
  limits: ['key'],
  dependsOn: 'content',
  handle: (input, grant, ports) => after(newestCards(grant, ports, input.query.limit), (data) => ({ data })),
})

const searchMessage = 'must have 2 to 100 characters, a letter or digit among them'
const countryMessage = 'must be an assigned ISO 3166-1 alpha-2 code'
const isAssigned = (text: string): boolean => parseCountryCode(text) !== undefined
const countryCode = pipe(
  string(),
  check(isAssigned, countryMessage),
  metadata({ pattern: '^[A-Za-z]{2}$', maxLength: 2, examples: ['DE'] }),
  toUpperCase(),
)
const searchText = pipe(
  string(),
  check((text) => {
    const length = [...text].length
    return length >= 2 && length <= 100 && foldWords(text).length > 0
  }, searchMessage),
  metadata({ minLength: 2, maxLength: 100, examples: ['north'] }),
)

export const directory: Route = defineRoute({
  name: 'directory',
  access: 'key',
  method: 'GET',
  path: '/public/profiles',
  scope: 'read:profiles',
  summary: 'Filtered partner directory',
  description:
    'The profiles that match, page by page. Follow `page.next_cursor`, or the `Link` header, until there is none.',
  parameters: {
    q: single(
      'text',
      searchText,
      undefined,
      'Words that must start a word of name, headline, description or tags',
    ),
    country: repeatable(countryCode, 'ISO 3166-1 alpha-2, in either case: any of these'),
    industry: repeatable(
      pipe(
        string(),
        maxLength(80, 'must be an industry slug'),
        metadata({ examples: ['travel'] }),
      ),
      'Industry slug: any of these',
    ),
    sort: single(
      'text',
      picklist(['name', '-published_at'], 'must be name or -published_at'),
      'name',
      'The order: by name, or newest first',
    ),
    limit: single('integer', wholeNumber(100), 20, 'How many profiles a page has'),
    cursor: cursorParameter,
  },
  reply: object({
    data: cards(100),
    page: pageShape,
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

const profileShape = pipe(
  strictObject({
    ...cardMembers,
    description: nullable(
      textShape('What it says of itself.', 'Trains, ferries and time to look out.', 5000),
    ),
    website_url: nullable(urlShape('Its website.', 'https://nordlicht-reisen.example')),
    city: nullable(textShape('The place that it is in.', 'Lübeck', 200)),
    founded_year: nullable(countShape('The year that it began in.', 2003, 9999)),
    employees: nullable(pipe(
      strictObject({
        min: nullable(countShape('At least so many.', 11)),
        max: nullable(countShape('At most so many.', 50)),
      }),
      metadata({ description: 'How many people work there.' }),
    )),
    tags: pipe(
      array(textShape('One word for it.', 'rail', 50)),
      metadata({ description: 'Words for it.', maxItems: 20 }),
    ),
    contact: nullable(pipe(
      strictObject({
        email: nullable(pipe(
          string(),
          metadata({
            description: 'Address for mail.',
            format: 'email',
            maxLength: 254,
            examples: ['hello@nordlicht-reisen.example'],
          }),
        )),
        phone: nullable(textShape('Number to call.', '+49 451 5550 112', 50)),
      }),
      metadata({ description: 'How to reach it.' }),
    )),
    links: pipe(
      array(strictObject({
        rel: textShape('What the link is for.', 'press', 50),
        url: urlShape('Where it leads.', 'https://nordlicht-reisen.example/press'),
      })),
      metadata({ description: 'More of it elsewhere.', maxItems: 20 }),
    ),
  }),
  metadata({ title: 'Profile', description: 'All that is public of a profile.' }),
)

export const profileDetail: Route = defineRoute({
  name: 'profile-detail',
  access: 'key',
  method: 'GET',
  path: '/public/profiles/:slug',
  scope: 'read:profiles',
  summary: 'Protected profile detail',
  description: 'All that is public of one profile.',
  problems: ['profile_not_found'],
  parameters: {},
  reply: object({ data: profileShape }),
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
