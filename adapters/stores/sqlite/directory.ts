import { after } from '../../../core/after.ts'
import type { Industry, Profile, ProfileCard } from '../../../core/model.ts'
import type { MaybePromise, ProfileQuery } from '../../../core/ports.ts'
import { readCard, readDetail } from '../record-text.ts'
import type { Database } from './database.ts'
import { LABELS } from './ranks.ts'
import { anyOf, audienceTerms, CARD_COLUMNS, type CardRow, createProfileSearch } from './search.ts'

/** `Directory` of the ports, synchronous but for lists that take long. */
export interface Directory {
  listProfiles(partner: string, query: ProfileQuery, now: number): MaybePromise<readonly ProfileCard[]>
  findProfile(partner: string, slug: string, now: number): Profile | undefined
  countProfiles(partner: string, by: 'country' | 'industry', now: number): ReadonlyMap<string, number>
  listIndustries(): readonly Industry[]
  nextProfileChangeAt(partner: string, now: number): number | undefined
}

export function createDirectory(database: Database): Directory {
  // A row is looked for whether the slug exists or not, and no detail is read of a hidden one: it costs what an absent one does.
  const profile = database.statement<[...CardRow, detail: string]>(`
    SELECT ${CARD_COLUMNS}, p.detail
    FROM (SELECT ifnull((SELECT id FROM profile WHERE slug = ?1), 0) AS id) found
    CROSS JOIN profile p ON p.id = found.id AND p.published_at <= ?3
      AND (instr(p.search, ' ~ ') > 0 OR instr(p.search, ' ~' || ?2 || ' ') > 0)
    CROSS JOIN industry i ON i.slug = p.industry`)
  const counts = {
    country: countStatement(database, 'country'),
    industry: countStatement(database, 'industry'),
  }
  const industries = database.statement<[string, string, string | null]>(
    'SELECT slug, name, parent_slug FROM industry',
  )
  const nextDue = database.statement<[recency: number]>(`
    SELECT r.key FROM search_newest s CROSS JOIN rank_newest r ON r.label = s.rowid
    WHERE s.search_newest MATCH ?1 AND s.rowid < CAST(?2 AS INTEGER) ORDER BY s.rowid DESC LIMIT 1`)
  const firstDue = database.statement<[label: number]>(
    "SELECT label FROM rank_newest WHERE (key, slug) > (?1, '') ORDER BY key, slug LIMIT 1",
  )
  const search = createProfileSearch(database)

  return {
    listProfiles: (partner, query, now) => after(search(partner, query, now), (rows) => rows.map(card)),

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
      const recency = nextDue.get(anyOf(audienceTerms(partner)), firstDue.get(-now)?.[0] ?? LABELS)?.[0]
      return recency === undefined ? undefined : -recency
    },
  }
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
      SELECT p.${column}, -(instr(p.search, ' ~ ') > 0 OR instr(p.search, ' ~' || ?1 || ' ') > 0)
      FROM rank_newest r CROSS JOIN profile p ON p.id = r.profile WHERE r.key < -?2
    ) GROUP BY ${column} HAVING sum(profiles) > 0`)
}
