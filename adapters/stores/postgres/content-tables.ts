import { fold } from '../../../core/lib/text.ts'
import type { ContentKind, ContentRecords, ProfileRecord } from '../../../core/ports/content.ts'
import { cardText, detailText, readCard, readDetail, RECORD_FORMATS, searchWords } from '../content-text.ts'
import { listText } from './sql.ts'
import type { Query } from './database.ts'
import { type CounterKey, createListingCounter, wordVector } from './listings.ts'
import { columnParameters, upsertSql } from './sql.ts'

/** What became of a record that was imported. */
export type UpsertOutcome = 'created' | 'replaced' | 'unchanged'

/** A record, and when it changed last. */
export interface StoredRecord<R> {
  readonly record: R
  readonly updatedAt: number
}

/** Where the records of one kind are kept, as far as one transaction goes. */
export interface ContentTable<R> {
  /** So many records are put or written at once, at most. */
  readonly batchSize: number
  /** Creates or replaces one record after the other, in few statements. @returns What became of each. */
  upsert(records: readonly R[], now: number): Promise<readonly UpsertOutcome[]>
  /** Creates or replaces records, each slug once, even if that changes nothing. */
  write(kept: readonly StoredRecord<R>[]): Promise<void>
  /** Which of these there are. */
  findExisting(slugs: readonly string[]): Promise<ReadonlySet<string>>
  /** Which of these are needed by records of any kind that are not among them. */
  findReferenced(slugs: readonly string[]): Promise<ReadonlySet<string>>
  remove(slugs: readonly string[]): Promise<void>
  /** Writes what was gathered meanwhile. To be called when all else is done. */
  flush(): Promise<void>
}

/** A record as it is to be kept. */
export interface UpsertDraft {
  readonly slug: string
  /** Equal records have equal texts. */
  readonly text: string
}

/**
 * What becomes of each record when one is put after the other.
 *
 * @param texts What is there, by slug; afterwards what is there then.
 * @returns The outcomes, and of each slug that was created or replaced the last draft.
 */
export function planUpserts<D extends UpsertDraft>(
  drafts: readonly D[],
  texts: Map<string, string>,
): { outcomes: UpsertOutcome[]; changed: D[] } {
  const changed = new Map<string, D>()
  const outcomes = drafts.map((draft): UpsertOutcome => {
    const before = texts.get(draft.slug)
    if (before === draft.text) return 'unchanged'
    texts.set(draft.slug, draft.text)
    changed.set(draft.slug, draft)
    return before === undefined ? 'created' : 'replaced'
  })
  return { outcomes, changed: [...changed.values()] }
}

/** What a shelf of one table can do without knowing more of its records than where their slugs are. */
export function openBaseTable(
  query: Query,
  table: string,
  primary: string,
): Pick<ContentTable<unknown>, 'findExisting' | 'findReferenced' | 'remove' | 'flush'> {
  const these = `FROM partner_api.${table} WHERE ${primary} = ANY ($1::text[])`
  return {
    async findExisting(slugs) {
      const rows = await query<[slug: string]>(`SELECT ${primary} ${these}`, [listText(slugs)])
      return new Set(rows.map(([slug]) => slug))
    },
    findReferenced: () => Promise.resolve(new Set()),
    async remove(slugs) {
      await query(`DELETE ${these}`, [listText(slugs)])
    },
    flush: () => Promise.resolve(),
  }
}

/** Opens the shelf of a kind in a transaction. */
export function openContentTable<K extends ContentKind>(
  kind: K,
  query: Query,
): ContentTable<ContentRecords[K]> {
  return openers[kind](query)
}

const openers: { readonly [K in ContentKind]: (query: Query) => ContentTable<ContentRecords[K]> } = {
  profiles: openProfileTable,
  industries: openIndustryTable,
  plans: openPlanTable,
  banners: openBannerTable,
}

const upsertPlans = upsertSql('plan', ['slug', 'record'])
const upsertBanners = upsertSql('banner', ['partner', 'record', 'updated_at'])
const upsertIndustries = upsertSql('industry', ['slug', 'name', 'parent_slug'])

function openPlanTable(query: Query): ContentTable<ContentRecords['plans']> {
  return openTextTable(query, 'plans', 'plan', 'slug', (slugs, texts) => query(upsertPlans, [slugs, texts]))
}

function openBannerTable(query: Query): ContentTable<ContentRecords['banners']> {
  return openTextTable(query, 'banners', 'banner', 'partner', (...lists) => query(upsertBanners, lists))
}

/** Plans and banners: no query looks into them, so they stay the text that they are. */
function openTextTable<K extends 'plans' | 'banners'>(
  query: Query,
  kind: K,
  table: string,
  primary: string,
  insert: (slugs: string, texts: string, instants: string) => Promise<unknown>,
): ContentTable<ContentRecords[K]> {
  const format = RECORD_FORMATS[kind]
  const toTextDraft = (record: ContentRecords[K]) => ({
    slug: format.slug(record),
    text: format.text(record),
  })

  async function writeDrafts(drafts: readonly { slug: string; text: string; updatedAt: number }[]) {
    if (drafts.length === 0) return
    await insert(
      listText(drafts.map(({ slug }) => slug)),
      listText(drafts.map(({ text }) => text)),
      listText(drafts.map(({ updatedAt }) => updatedAt)),
    )
  }

  return {
    ...openBaseTable(query, table, primary),
    batchSize: 500,

    async upsert(records, now) {
      const drafts = records.map(toTextDraft)
      const rows = await query<[slug: string, text: string]>(
        `SELECT ${primary}, record FROM partner_api.${table} WHERE ${primary} = ANY ($1::text[])`,
        [listText(drafts.map(({ slug }) => slug))],
      )
      const { outcomes, changed } = planUpserts(drafts, new Map(rows))
      await writeDrafts(changed.map((draft) => ({ ...draft, updatedAt: now })))
      return outcomes
    },

    write: (kept) =>
      writeDrafts(kept.map(({ record, updatedAt }) => ({ ...toTextDraft(record), updatedAt }))),
  }
}

function openIndustryTable(query: Query): ContentTable<ContentRecords['industries']> {
  const { text } = RECORD_FORMATS.industries

  async function write(
    kept: readonly Pick<StoredRecord<ContentRecords['industries']>, 'record'>[],
  ): Promise<void> {
    if (kept.length === 0) return
    await query(upsertIndustries, [
      listText(kept.map(({ record }) => record.slug)),
      listText(kept.map(({ record }) => record.name)),
      listText(kept.map(({ record }) => record.parentSlug ?? null)),
    ])
  }

  return {
    ...openBaseTable(query, 'industry', 'slug'),
    // All in one statement: what they refer to is looked for at its end, and parents may come after children.
    batchSize: Infinity,

    async upsert(records) {
      const drafts = records.map((record) => ({ record, slug: record.slug, text: text(record) }))
      const rows = await query<[slug: string, name: string, parentSlug: string | null]>(
        'SELECT slug, name, parent_slug FROM partner_api.industry WHERE slug = ANY ($1::text[])',
        [listText(drafts.map(({ slug }) => slug))],
      )
      const texts = rows.map(([slug, name, parentSlug]): [string, string] => [
        slug,
        text({ slug, name, parentSlug: parentSlug ?? undefined }),
      ])
      const { outcomes, changed } = planUpserts(drafts, new Map(texts))
      await write(changed)
      return outcomes
    },

    write,

    async findReferenced(slugs) {
      const rows = await query<[slug: string]>(
        `SELECT needed.slug FROM unnest($1::text[]) AS needed (slug)
        WHERE EXISTS (SELECT 1 FROM partner_api.profile p WHERE p.industry = needed.slug)
          OR EXISTS (
            SELECT 1 FROM partner_api.industry i
            WHERE i.parent_slug = needed.slug AND i.slug <> ALL ($1::text[])
          )`,
        [listText(slugs)],
      )
      return new Set(rows.map(([slug]) => slug))
    },
  }
}

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

type ListingRow = [...CounterKey, slug: string, nameKey: string, recency: number, words: string]

interface ProfileDraft {
  readonly slug: string
  readonly text: string
  readonly row: ProfileRow
  readonly record: ProfileRecord
}

const upsertProfiles = upsertSql('profile', [...PROFILE_COLUMNS, 'updated_at'])

/** A profile is kept once, as its record; its listings follow from that and are written with it. */
export function openProfileTable(query: Query): ContentTable<ProfileRecord> {
  const base = openBaseTable(query, 'profile', 'slug')
  const counter = createListingCounter()

  async function readRows(slugs: readonly string[]): Promise<Map<string, ProfileRow>> {
    const rows = await query<ProfileRow>(
      `SELECT ${PROFILE_COLUMNS} FROM partner_api.profile WHERE slug = ANY ($1::text[])`,
      [listText(slugs)],
    )
    return new Map(rows.map((row) => [row[0], row]))
  }

  async function deleteListings(slugs: readonly string[]): Promise<void> {
    const deleted = await query<[...CounterKey]>(
      'DELETE FROM partner_api.listing WHERE slug = ANY ($1::text[]) RETURNING audience, country, industry',
      [listText(slugs)],
    )
    for (const key of deleted) counter.add(key, -1)
  }

  async function insertListings(rows: readonly ListingRow[]): Promise<void> {
    for (const [audience, country, industry] of rows) counter.add([audience, country, industry], 1)
    if (rows.length === 0) return
    await query(
      `INSERT INTO partner_api.listing (audience, country, industry, slug, name_key, recency, words)
      SELECT audience, country, industry, slug, name_key, recency, words::tsvector
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[])
        AS listed (audience, country, industry, slug, name_key, recency, words)`,
      columnParameters(rows),
    )
  }

  /** @param before What is there under the same slugs. */
  async function replace(
    drafts: readonly (ProfileDraft & { readonly updatedAt: number })[],
    before: ReadonlyMap<string, ProfileRow>,
  ): Promise<void> {
    if (drafts.length === 0) return
    await query(upsertProfiles, columnParameters(drafts.map(({ row, updatedAt }) => [...row, updatedAt])))
    // What lists don't see of a profile is changed more often than what they do, and costs no index anything.
    const changed = drafts.map(({ slug, record }) => {
      const row = before.get(slug)
      const [old, listings] = [row === undefined ? [] : toListings(readProfile(row)), toListings(record)]
      return { slug, old, listings }
    }).filter(({ old, listings }) => JSON.stringify(old) !== JSON.stringify(listings))
    const listed = changed.filter(({ old }) => old.length > 0).map(({ slug }) => slug)
    if (listed.length > 0) await deleteListings(listed)
    await insertListings(changed.flatMap(({ listings }) => listings))
  }

  return {
    ...base,
    batchSize: 500,

    async upsert(records, now) {
      const drafts = records.map(toDraft)
      const before = await readRows(drafts.map(({ slug }) => slug))
      const texts = Array.from(before, ([slug, row]): [string, string] => [slug, profileText(row)])
      const { outcomes, changed } = planUpserts(drafts, new Map(texts))
      await replace(changed.map((draft) => ({ ...draft, updatedAt: now })), before)
      return outcomes
    },

    async write(kept: readonly StoredRecord<ProfileRecord>[]) {
      const before = await readRows(kept.map(({ record }) => record.slug))
      await replace(kept.map(({ record, updatedAt }) => ({ ...toDraft(record), updatedAt })), before)
    },

    async remove(slugs) {
      await deleteListings(slugs)
      await base.remove(slugs)
    },

    flush: () => counter.flush(query),
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

function toDraft(record: ProfileRecord): ProfileDraft {
  const { slug, country, industry, publishedAt } = record
  const row: ProfileRow = [slug, country, industry, publishedAt ?? null, cardText(record), detailText(record)]
  return { slug, text: profileText(row), row, record }
}

/** JSON has no line breaks of its own here, and what stands before it is of one line. */
function profileText(row: ProfileRow): string {
  return row.join('\n')
}

function toListings(record: ProfileRecord): ListingRow[] {
  const { slug, country, industry, publishedAt } = record
  if (publishedAt === undefined) return []
  const nameKey = fold(record.name)
  const words = wordVector(searchWords(record))
  return Array.from(
    new Set(record.visibleTo ?? ['']),
    (audience) => [audience, country, industry, slug, nameKey, -publishedAt, words],
  )
}
