import type { Industry, Profile, ProfileCard } from '../../../core/model.ts'
import type { ProfileQuery } from '../../../core/ports.ts'
import { readCard, readDetail } from '../record-text.ts'
import type { Database } from './database.ts'
import { createPageReader, type Range } from './pages.ts'
import { createSearchReader } from './search.ts'

/** `Directory` of the ports, synchronous. */
export interface Directory {
  listProfiles(partner: string, query: ProfileQuery, now: number): readonly ProfileCard[]
  findProfile(partner: string, slug: string, now: number): Profile | undefined
  countProfiles(partner: string, by: 'country' | 'industry', now: number): ReadonlyMap<string, number>
  listIndustries(): readonly Industry[]
  nextProfileChangeAt(partner: string, now: number): number | undefined
}

type CardRow = [
  slug: string,
  country: string,
  industry: string,
  industryName: string,
  publishedAt: number,
  updatedAt: number,
  card: string,
]

const cardColumns = 'p.slug, p.country, p.industry, i.name, p.published_at, p.updated_at, p.card'

export function createDirectory(database: Database): Directory {
  const cards = database.statement<CardRow>(`
    SELECT ${cardColumns} FROM json_each(?1) place CROSS JOIN profile p ON p.id = place.value
    CROSS JOIN industry i ON i.slug = p.industry ORDER BY place.key`)
  // Through the listings, which are looked for whether the slug exists or not: what is hidden costs what is absent does.
  const profile = database.statement<[...CardRow, detail: string]>(`
    SELECT ${cardColumns}, p.detail
    FROM (SELECT ifnull((SELECT id FROM profile WHERE slug = ?1), 0) AS id) found
    CROSS JOIN listing l ON l.profile = found.id AND l.audience IN ('', ?2) AND l.recency >= -?3
    CROSS JOIN profile p ON p.id = found.id CROSS JOIN industry i ON i.slug = p.industry`)
  const counts = {
    country: countStatement(database, 'country'),
    industry: countStatement(database, 'industry'),
  }
  const industries = database.statement<[string, string, string | null]>(
    'SELECT slug, name, parent_slug FROM industry',
  )
  const nextDue = database.statement<[recency: number | null]>(
    'SELECT max(recency) FROM listing WHERE audience = ?1 AND recency < -?2',
  )
  const readPage = createPageReader(database)
  const readSearch = createSearchReader(database, readPage)

  return {
    listProfiles(partner, query, now) {
      const range: Range = { ...query, partner, after: start(query, now), now }
      return database.snapshot(() => {
        const places = query.words.length === 0
          ? readPage(range, query.limit)
          : readSearch(range, query.words, query.limit)
        return cards.all(JSON.stringify(places.map(([, , id]) => id))).map(card)
      })
    },

    findProfile(partner, slug, now) {
      const row = profile.get(slug, partner, now)
      if (row === undefined) return undefined
      const { visibleTo: _, ...detail } = readDetail(row[7])
      return { ...card(row as unknown as CardRow), ...detail }
    },

    countProfiles: (partner, by, now) => new Map(counts[by].all(partner, now)),

    listIndustries: () =>
      industries.all().map(([slug, name, parentSlug]) => ({
        slug,
        name,
        parentSlug: parentSlug ?? undefined,
      })),

    nextProfileChangeAt(partner, now) {
      const dues = ['', partner].flatMap((audience) => {
        const [recency] = nextDue.get(audience, now)!
        return recency === null ? [] : [-recency]
      })
      return dues.length === 0 ? undefined : Math.min(...dues)
    },
  }
}

/** The place after which a page starts: by recency never before what is due. */
function start({ sort, after }: ProfileQuery, now: number): [key: string | number, slug: string] {
  if (sort === 'name') return after === undefined ? ['', ''] : [after.key, after.slug]
  return after === undefined || Number(after.key) > now ? [-now, ''] : [-after.key, after.slug]
}

function card([slug, country, industry, industryName, publishedAt, updatedAt, text]: CardRow): ProfileCard {
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

/** Everything that is listed, less what is not due yet. */
function countStatement(database: Database, column: 'country' | 'industry') {
  return database.statement<[string, number]>(`
    SELECT ${column}, sum(profiles) FROM (
      SELECT ${column}, listings AS profiles FROM tally WHERE audience IN ('', ?1)
      UNION ALL
      SELECT ${column}, -1 FROM listing WHERE audience IN ('', ?1) AND recency < -?2
    ) GROUP BY ${column} HAVING sum(profiles) > 0`)
}
