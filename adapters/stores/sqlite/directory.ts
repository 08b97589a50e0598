import { andThen } from '../../../core/lib/promise.ts'
import type { Directory } from '../../../core/ports/directory.ts'
import { CARD_COLUMNS, type CardRow, readCardRow, readDetail } from '../sql/tables.ts'
import type { SqliteDatabase } from './database.ts'
import { MAX_LABEL } from './ranks.ts'
import { anyOf, audienceTerms, createProfileSearch } from './search.ts'
import { createTimeSlicer } from './time-slicer.ts'

export function createDirectory(database: SqliteDatabase) {
  // A hidden profile costs as much as an absent one: a row is looked up in both cases, and no detail is read.
  const selectProfile = database.statement<[detail: string, ...CardRow]>(`
    SELECT p.detail, ${CARD_COLUMNS}
    FROM (SELECT ifnull((SELECT id FROM profile WHERE slug = ?1), 0) AS id) found
    CROSS JOIN profile p ON p.id = found.id AND p.published_at <= ?3
      AND (instr(p.search, ' ~ ') > 0 OR instr(p.search, ' ~' || ?2 || ' ') > 0)
    CROSS JOIN industry i ON i.slug = p.industry`)
  const selectNextDue = database.statement<[recency: number]>(`
    SELECT r.key FROM search_newest s CROSS JOIN rank_newest r ON r.label = s.rowid
    WHERE s.search_newest MATCH ?1 AND s.rowid < CAST(?2 AS INTEGER) ORDER BY s.rowid DESC LIMIT 1`)
  const selectFirstDue = database.statement<[label: number]>(
    "SELECT label FROM rank_newest WHERE (key, slug) > (?1, '') ORDER BY key, slug LIMIT 1",
  )
  const runTimeSliced = createTimeSlicer(database)
  const search = createProfileSearch(database, runTimeSliced)
  /** The label of the first due profile by recency: profiles that are not due come before it. */
  const firstDueAt = (now: number) => selectFirstDue.get(-now)?.[0] ?? MAX_LABEL
  const countListed = createProfileCount(database, firstDueAt)

  return {
    listProfiles: (partner, query, now) =>
      andThen(search(partner, query, now), (rows) => rows.map(readCardRow)),

    findProfile(partner, slug, now) {
      const row = selectProfile.get(slug, partner, now)
      if (row === undefined) return undefined
      const [detailText, ...cardRow] = row
      const { visibleTo: _, ...detail } = readDetail(detailText)
      return { ...readCardRow(cardRow), ...detail }
    },

    countProfiles: (partner, by, now) => runTimeSliced(partner, countListed(partner, by, now), Infinity),

    nextProfileChangeAt(partner, now) {
      const recency = selectNextDue.get(anyOf(audienceTerms(partner)), firstDueAt(now))?.[0]
      return recency === undefined ? undefined : -recency
    },
  } satisfies Omit<Directory, 'listIndustries'>
}

/** Profiles that are not due, per step. */
const undueBatchSize = 500

/** Counts all listed profiles, less those that are not due. */
function createProfileCount(database: SqliteDatabase, firstDueAt: (now: number) => number) {
  const selectListed = database.statement<[country: string, industry: string, listings: number]>(
    "SELECT country, industry, listings FROM tally WHERE audience IN ('', ?1)",
  )
  const selectUndue = database.statement<
    [label: number, country: string, industry: string, isVisible: 0 | 1]
  >(`
    SELECT r.label, p.country, p.industry, instr(p.search, ' ~ ') > 0 OR instr(p.search, ' ~' || ?1 || ' ') > 0
    FROM rank_newest r CROSS JOIN profile p ON p.id = r.profile
    WHERE r.label > ?2 AND r.label < ?3 ORDER BY r.label LIMIT ${undueBatchSize}`)
  const selectRevision = database.statement<[number]>('SELECT content_changes FROM store')

  return function* (
    partner: string,
    by: 'country' | 'industry',
    now: number,
  ): Generator<void, ReadonlyMap<string, number>> {
    for (;;) {
      const before = selectRevision.get()![0]
      const counts = new Map<string, number>()
      const add = (country: string, industry: string, more: number) => {
        const key = by === 'country' ? country : industry
        counts.set(key, (counts.get(key) ?? 0) + more)
      }
      for (const [country, industry, listings] of selectListed.all(partner)) add(country, industry, listings)
      const end = firstDueAt(now)
      let rows = selectUndue.all(partner, 0, end)
      for (; rows.length > 0; rows = selectUndue.all(partner, rows.at(-1)![0], end)) {
        for (const [, country, industry, isVisible] of rows) add(country, industry, -isVisible)
        if (rows.length < undueBatchSize) break
        yield
        // After a change of content, the count starts again.
        if (selectRevision.get()![0] !== before) break
      }
      if (selectRevision.get()![0] === before) {
        return new Map([...counts].filter(([, profiles]) => profiles > 0))
      }
    }
  }
}
