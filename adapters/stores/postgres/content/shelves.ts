import type { ContentKind, ContentRecords } from '../../../../core/content/records.ts'
import { RECORD_FORMATS } from '../../record-text.ts'
import { upsert } from '../column-lists.ts'
import { listText, type Query } from '../connection/database.ts'
import { openProfileShelf } from './profile-shelf.ts'
import { type Kept, openTable, putInOrder, type Shelf } from './shelf.ts'

/** Opens the shelf of a kind in a transaction. */
export function openShelf<K extends ContentKind>(kind: K, query: Query): Shelf<ContentRecords[K]> {
  return openers[kind](query)
}

const openers: { readonly [K in ContentKind]: (query: Query) => Shelf<ContentRecords[K]> } = {
  profiles: openProfileShelf,
  industries: openIndustryShelf,
  plans: openPlanShelf,
  banners: openBannerShelf,
}

const insertPlans = upsert('plan', ['slug', 'record'])
const insertBanners = upsert('banner', ['partner', 'record', 'updated_at'])
const insertIndustries = upsert('industry', ['slug', 'name', 'parent_slug'])

function openPlanShelf(query: Query): Shelf<ContentRecords['plans']> {
  return openTextShelf(query, 'plans', 'plan', 'slug', (slugs, texts) => query(insertPlans, [slugs, texts]))
}

function openBannerShelf(query: Query): Shelf<ContentRecords['banners']> {
  return openTextShelf(query, 'banners', 'banner', 'partner', (...lists) => query(insertBanners, lists))
}

/** Plans and banners: no query looks into them, so they stay the text that they are. */
function openTextShelf<K extends 'plans' | 'banners'>(
  query: Query,
  kind: K,
  table: string,
  primary: string,
  insert: (slugs: string, texts: string, instants: string) => Promise<unknown>,
): Shelf<ContentRecords[K]> {
  const format = RECORD_FORMATS[kind]
  const draftOf = (record: ContentRecords[K]) => ({ slug: format.slug(record), text: format.text(record) })

  async function writeDrafts(drafts: readonly { slug: string; text: string; updatedAt: number }[]) {
    if (drafts.length === 0) return
    await insert(
      listText(drafts.map(({ slug }) => slug)),
      listText(drafts.map(({ text }) => text)),
      listText(drafts.map(({ updatedAt }) => updatedAt)),
    )
  }

  return {
    ...openTable(query, table, primary),
    atOnce: 500,

    async put(records, now) {
      const drafts = records.map(draftOf)
      const rows = await query<[slug: string, text: string]>(
        `SELECT ${primary}, record FROM partner_api.${table} WHERE ${primary} = ANY ($1::text[])`,
        [listText(drafts.map(({ slug }) => slug))],
      )
      const { outcomes, changed } = putInOrder(drafts, new Map(rows))
      await writeDrafts(changed.map((draft) => ({ ...draft, updatedAt: now })))
      return outcomes
    },

    write: (kept) => writeDrafts(kept.map(({ record, updatedAt }) => ({ ...draftOf(record), updatedAt }))),
  }
}

function openIndustryShelf(query: Query): Shelf<ContentRecords['industries']> {
  const { text } = RECORD_FORMATS.industries

  async function write(kept: readonly Pick<Kept<ContentRecords['industries']>, 'record'>[]): Promise<void> {
    if (kept.length === 0) return
    await query(insertIndustries, [
      listText(kept.map(({ record }) => record.slug)),
      listText(kept.map(({ record }) => record.name)),
      listText(kept.map(({ record }) => record.parentSlug ?? null)),
    ])
  }

  return {
    ...openTable(query, 'industry', 'slug'),
    // All in one statement: what they refer to is looked for at its end, and parents may come after children.
    atOnce: Infinity,

    async put(records) {
      const drafts = records.map((record) => ({ record, slug: record.slug, text: text(record) }))
      const rows = await query<[slug: string, name: string, parentSlug: string | null]>(
        'SELECT slug, name, parent_slug FROM partner_api.industry WHERE slug = ANY ($1::text[])',
        [listText(drafts.map(({ slug }) => slug))],
      )
      const texts = rows.map(([slug, name, parentSlug]): [string, string] => [
        slug,
        text({ slug, name, parentSlug: parentSlug ?? undefined }),
      ])
      const { outcomes, changed } = putInOrder(drafts, new Map(texts))
      await write(changed)
      return outcomes
    },

    write,

    async findNeeded(slugs) {
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
