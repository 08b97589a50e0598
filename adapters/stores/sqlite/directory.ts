import { after } from '../../../core/after.ts'
import type { Industry, Profile, ProfileCard } from '../../../core/model.ts'
import type { MaybePromise, ProfileQuery } from '../../../core/ports.ts'
import { readCard, readDetail } from '../record-text.ts'
import type { Database } from './database.ts'
import { LABELS } from './ranks.ts'
import {
  anyOf,
  audienceTerms,
  CARD_COLUMNS,
  type CardRow,
  createProfileSearch,
  createTurns,
} from './search.ts'

/** `Directory` of the ports, synchronous but for lists that take long. */
export interface Directory {
  listProfiles(partner: string, query: ProfileQuery, now: number): MaybePromise<readonly ProfileCard[]>
  findProfile(partner: string, slug: string, now: number): Profile | undefined
  countProfiles(
    partner: string,
    by: 'country' | 'industry',
    now: number,
  ): MaybePromise<ReadonlyMap<string, number>>
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
  const industries = database.statement<[string, string, string | null]>(
    'SELECT slug, name, parent_slug FROM industry',
  )
  const nextDue = database.statement<[recency: number]>(`
    SELECT r.key FROM search_newest s CROSS JOIN rank_newest r ON r.label = s.rowid
    WHERE s.search_newest MATCH ?1 AND s.rowid < CAST(?2 AS INTEGER) ORDER BY s.rowid DESC LIMIT 1`)
  const firstDue = database.statement<[label: number]>(
    "SELECT label FROM rank_newest WHERE (key, slug) > (?1, '') ORDER BY key, slug LIMIT 1",
  )
  const runInTurns = createTurns(database)
  const search = createProfileSearch(database, runInTurns)
  /** By recency, what is not due stands before this label. */
  const firstDueAt = (now: number) => firstDue.get(-now)?.[0] ?? LABELS
  const count = createCount(database, firstDueAt)

  return {
    listProfiles: (partner, query, now) => after(search(partner, query, now), (rows) => rows.map(card)),

    findProfile(partner, slug, now) {
      const row = profile.get(slug, partner, now)
      if (row === undefined) return undefined
      const { visibleTo: _, ...detail } = readDetail(row[7])
      return { ...card(row as unknown as CardRow), ...detail }
    },

    countProfiles: (partner, by, now) => runInTurns(partner, count(partner, by, now), Infinity),

    listIndustries: () =>
      industries.all().map(([slug, name, parentSlug]) => ({
        slug,
        name,
        parentSlug: parentSlug ?? undefined,
      })),

    nextProfileChangeAt(partner, now) {
      const recency = nextDue.get(anyOf(audienceTerms(partner)), firstDueAt(now))?.[0]
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

/** Profiles that are not due yet, read in one step. */
const undueAtOnce = 500

/** Counts everything that is listed, less what is not due yet. */
function createCount(database: Database, firstDueAt: (now: number) => number) {
  const listed = database.statement<[country: string, industry: string, listings: number]>(
    "SELECT country, industry, listings FROM tally WHERE audience IN ('', ?1)",
  )
  const undue = database.statement<[label: number, country: string, industry: string, isVisible: 0 | 1]>(`
    SELECT r.label, p.country, p.industry, instr(p.search, ' ~ ') > 0 OR instr(p.search, ' ~' || ?1 || ' ') > 0
    FROM rank_newest r CROSS JOIN profile p ON p.id = r.profile
    WHERE r.label > ?2 AND r.label < ?3 ORDER BY r.label LIMIT ${undueAtOnce}`)
  const revision = database.statement<[number]>('SELECT content_changes FROM store')

  return function* (
    partner: string,
    by: 'country' | 'industry',
    now: number,
  ): Generator<void, ReadonlyMap<string, number>> {
    for (;;) {
      const before = revision.get()![0]
      const counts = new Map<string, number>()
      const add = (country: string, industry: string, more: number) => {
        const key = by === 'country' ? country : industry
        counts.set(key, (counts.get(key) ?? 0) + more)
      }
      for (const [country, industry, listings] of listed.all(partner)) add(country, industry, listings)
      const end = firstDueAt(now)
      let rows = undue.all(partner, 0, end)
      for (; rows.length > 0; rows = undue.all(partner, rows.at(-1)![0], end)) {
        for (const [, country, industry, isVisible] of rows) add(country, industry, -isVisible)
        if (rows.length < undueAtOnce) break
        yield
        // What was counted so far may be counted otherwise by now.
        if (revision.get()![0] !== before) break
      }
      if (revision.get()![0] === before) return new Map([...counts].filter(([, profiles]) => profiles > 0))
    }
  }
}
