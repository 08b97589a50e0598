import type { ContentKind, ContentRecords } from '../../../core/content/records.ts'
import { RECORD_FORMATS } from '../record-text.ts'
import type { Database } from './database.ts'
import { createProfileShelf } from './profile-shelf.ts'

/** Where the records of one kind are kept. Writes belong in a transaction. */
export interface Shelf<R> {
  /** The text of the record with this slug. */
  find(slug: string): string | undefined
  /** Equal records have equal texts. */
  text(record: R): string
  /** Creates or replaces records, each slug once. */
  write(records: readonly R[], now: number): void
  /** By slug. */
  all(): Iterable<R>
  /** Slugs of the records of any kind that need this one. */
  neededBy(slug: string): readonly { readonly kind: ContentKind; readonly slug: string }[]
  remove(slugs: readonly string[]): void
}

/** The shelf of every kind. */
export type Shelves = { readonly [K in ContentKind]: Shelf<ContentRecords[K]> }

export function createShelves(database: Database): Shelves {
  return {
    profiles: createProfileShelf(database),
    industries: createIndustryShelf(database),
    plans: createTextShelf(database, 'plans', 'plan', 'slug'),
    banners: createTextShelf(database, 'banners', 'banner', 'partner', 'updated_at'),
  }
}

/** Plans and banners: no query looks into them, so they stay the text that they are. */
function createTextShelf<K extends 'plans' | 'banners'>(
  database: Database,
  kind: K,
  table: string,
  primary: string,
  updated?: string,
): Shelf<ContentRecords[K]> {
  const format = RECORD_FORMATS[kind]
  const find = database.statement<[record: string]>(`SELECT record FROM ${table} WHERE ${primary} = ?1`)
  const write = database.statement(
    updated === undefined
      ? `INSERT OR REPLACE INTO ${table} (${primary}, record) VALUES (?1, ?2)`
      : `INSERT OR REPLACE INTO ${table} (${primary}, record, ${updated}) VALUES (?1, ?2, ?3)`,
  )
  const erase = database.statement(`DELETE FROM ${table} WHERE ${primary} = ?1`)

  return {
    find: (slug) => find.get(slug)?.[0],
    text: format.text,
    write(records, now) {
      for (const record of records) {
        write.run(format.slug(record), format.text(record), ...(updated === undefined ? [] : [now]))
      }
    },
    *all() {
      for (const [text] of database.iterate<[string]>(`SELECT record FROM ${table} ORDER BY ${primary}`)) {
        yield format.read(text)
      }
    },
    neededBy: () => [],
    remove(slugs) {
      for (const slug of slugs) erase.run(slug)
    },
  }
}

function createIndustryShelf(database: Database): Shelf<ContentRecords['industries']> {
  const { text } = RECORD_FORMATS.industries
  const find = database.statement<[name: string, parent: string | null]>(
    'SELECT name, parent_slug FROM industry WHERE slug = ?1',
  )
  // No REPLACE: it would delete the row that profiles refer to.
  const write = database.statement(`
    INSERT INTO industry (slug, name, parent_slug) VALUES (?1, ?2, ?3)
    ON CONFLICT (slug) DO UPDATE SET name = excluded.name, parent_slug = excluded.parent_slug`)
  const erase = database.statement('DELETE FROM industry WHERE slug = ?1')
  const children = database.statement<[slug: string]>('SELECT slug FROM industry WHERE parent_slug = ?1')
  const profile = database.statement<[slug: string]>('SELECT slug FROM profile WHERE industry = ?1 LIMIT 1')

  return {
    find(slug) {
      const row = find.get(slug)
      return row && text({ slug, name: row[0], parentSlug: row[1] ?? undefined })
    },
    text,
    write(records) {
      for (const { slug, name, parentSlug } of records) write.run(slug, name, parentSlug ?? null)
    },
    *all() {
      const rows = database.iterate<[string, string, string | null]>(
        'SELECT slug, name, parent_slug FROM industry ORDER BY slug',
      )
      for (const [slug, name, parentSlug] of rows) yield { slug, name, parentSlug: parentSlug ?? undefined }
    },
    neededBy: (needed) => [
      ...children.all(needed).map(([slug]) => ({ kind: 'industries' as const, slug })),
      ...profile.all(needed).map(([slug]) => ({ kind: 'profiles' as const, slug })),
    ],
    remove(slugs) {
      for (const slug of slugs) erase.run(slug)
    },
  }
}
