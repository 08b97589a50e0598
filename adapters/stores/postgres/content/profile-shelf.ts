import { fold } from '../../../../core/content/fold.ts'
import type { ProfileRecord } from '../../../../core/content/records.ts'
import { cardText, detailText, readCard, readDetail } from '../../record-text.ts'
import { searchWords } from '../../search-text.ts'
import { parametersOf, upsert } from '../column-lists.ts'
import { listText, type Query } from '../connection/database.ts'
import { wordVector } from './lexemes.ts'
import { type Kept, openTable, putInOrder, type Shelf } from './shelf.ts'
import { createTally, type TallyKey } from './tally.ts'

/** A profile as its row has it. */
export type ProfileRow = [
  slug: string,
  country: string,
  industry: string,
  publishedAt: number | null,
  card: string,
  detail: string,
]

/** The columns of a `ProfileRow`. */
export const PROFILE_COLUMNS = ['slug', 'country', 'industry', 'published_at', 'card', 'detail'] as const

type ListingRow = [...TallyKey, slug: string, nameKey: string, recency: number, words: string]

interface ProfileDraft {
  readonly slug: string
  readonly text: string
  readonly row: ProfileRow
  readonly record: ProfileRecord
}

const insertProfiles = upsert('profile', [...PROFILE_COLUMNS, 'updated_at'])

/** A profile is kept once, as its record; its listings follow from that and are written with it. */
export function openProfileShelf(query: Query): Shelf<ProfileRecord> {
  const table = openTable(query, 'profile', 'slug')
  const tally = createTally()

  async function read(slugs: readonly string[]): Promise<Map<string, ProfileRow>> {
    const rows = await query<ProfileRow>(
      `SELECT ${PROFILE_COLUMNS} FROM partner_api.profile WHERE slug = ANY ($1::text[])`,
      [listText(slugs)],
    )
    return new Map(rows.map((row) => [row[0], row]))
  }

  async function unlist(slugs: readonly string[]): Promise<void> {
    const gone = await query<[...TallyKey]>(
      'DELETE FROM partner_api.listing WHERE slug = ANY ($1::text[]) RETURNING audience, country, industry',
      [listText(slugs)],
    )
    for (const key of gone) tally.add(key, -1)
  }

  async function list(rows: readonly ListingRow[]): Promise<void> {
    for (const [audience, country, industry] of rows) tally.add([audience, country, industry], 1)
    if (rows.length === 0) return
    await query(
      `INSERT INTO partner_api.listing (audience, country, industry, slug, name_key, recency, words)
      SELECT audience, country, industry, slug, name_key, recency, words::tsvector
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[])
        AS listed (audience, country, industry, slug, name_key, recency, words)`,
      parametersOf(rows),
    )
  }

  /** @param before What is there under the same slugs. */
  async function replace(
    drafts: readonly (ProfileDraft & { readonly updatedAt: number })[],
    before: ReadonlyMap<string, ProfileRow>,
  ): Promise<void> {
    if (drafts.length === 0) return
    await query(insertProfiles, parametersOf(drafts.map(({ row, updatedAt }) => [...row, updatedAt])))
    // What lists don't see of a profile is changed more often than what they do, and costs no index anything.
    const changed = drafts.map(({ slug, record }) => {
      const row = before.get(slug)
      const [old, listings] = [row === undefined ? [] : listingsOf(readProfile(row)), listingsOf(record)]
      return { slug, old, listings }
    }).filter(({ old, listings }) => JSON.stringify(old) !== JSON.stringify(listings))
    const listed = changed.filter(({ old }) => old.length > 0).map(({ slug }) => slug)
    if (listed.length > 0) await unlist(listed)
    await list(changed.flatMap(({ listings }) => listings))
  }

  return {
    ...table,
    atOnce: 500,

    async put(records, now) {
      const drafts = records.map(draftOf)
      const before = await read(drafts.map(({ slug }) => slug))
      const texts = Array.from(before, ([slug, row]): [string, string] => [slug, textOf(row)])
      const { outcomes, changed } = putInOrder(drafts, new Map(texts))
      await replace(changed.map((draft) => ({ ...draft, updatedAt: now })), before)
      return outcomes
    },

    async write(kept: readonly Kept<ProfileRecord>[]) {
      const before = await read(kept.map(({ record }) => record.slug))
      await replace(kept.map(({ record, updatedAt }) => ({ ...draftOf(record), updatedAt })), before)
    },

    async remove(slugs) {
      await unlist(slugs)
      await table.remove(slugs)
    },

    finish: () => tally.write(query),
  }
}

/** The record of a row. */
export function readProfile([slug, country, industry, publishedAt, card, detail]: ProfileRow): ProfileRecord {
  return {
    slug,
    country,
    industry,
    publishedAt: publishedAt ?? undefined,
    ...readCard(card),
    ...readDetail(detail),
  }
}

function draftOf(record: ProfileRecord): ProfileDraft {
  const { slug, country, industry, publishedAt } = record
  const row: ProfileRow = [slug, country, industry, publishedAt ?? null, cardText(record), detailText(record)]
  return { slug, text: textOf(row), row, record }
}

/** JSON has no line breaks of its own here, and what stands before it is of one line. */
function textOf(row: ProfileRow): string {
  return row.join('\n')
}

function listingsOf(record: ProfileRecord): ListingRow[] {
  const { slug, country, industry, publishedAt } = record
  if (publishedAt === undefined) return []
  const nameKey = fold(record.name)
  const words = wordVector(searchWords(record))
  return Array.from(
    new Set(record.visibleTo ?? ['']),
    (audience) => [audience, country, industry, slug, nameKey, -publishedAt, words],
  )
}
