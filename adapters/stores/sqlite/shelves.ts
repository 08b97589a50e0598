import type { ContentKind, ContentRecords } from '../../../core/content/records.ts'
import { RECORD_FORMATS } from '../record-text.ts'
import type { Database, Value } from './database.ts'
import { createProfileShelf } from './profile-shelf.ts'

/** What became of a record that was imported. */
export type Outcome = 'created' | 'replaced' | 'unchanged'

/** Where the records of one kind are kept. Writes belong in a transaction. */
export interface Shelf<R> {
  put(record: R, now: number): Outcome
  /** By slug. */
  all(): Iterable<R>
  has(slug: string): boolean
  /** Slugs of the records of any kind that need this one. */
  neededBy(slug: string): readonly { readonly kind: ContentKind; readonly slug: string }[]
  remove(slug: string): void
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
    put(record, now) {
      const slug = format.slug(record)
      const text = format.text(record)
      const existing = find.get(slug)?.[0]
      if (existing === text) return 'unchanged'
      write.run(slug, text, ...(updated === undefined ? [] : [now]))
      return existing === undefined ? 'created' : 'replaced'
    },
    *all() {
      for (const [text] of database.iterate<[string]>(`SELECT record FROM ${table} ORDER BY ${primary}`)) {
        yield format.read(text)
      }
    },
    has: (slug) => find.get(slug) !== undefined,
    neededBy: () => [],
    remove: (slug) => void erase.run(slug),
  }
}

function createIndustryShelf(database: Database): Shelf<ContentRecords['industries']> {
  const find = database.statement<[name: string, parent: Value]>(
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
    put({ slug, name, parentSlug }) {
      const existing = find.get(slug)
      if (existing?.[0] === name && existing[1] === (parentSlug ?? null)) return 'unchanged'
      write.run(slug, name, parentSlug ?? null)
      return existing === undefined ? 'created' : 'replaced'
    },
    *all() {
      const rows = database.iterate<[string, string, string | null]>(
        'SELECT slug, name, parent_slug FROM industry ORDER BY slug',
      )
      for (const [slug, name, parentSlug] of rows) yield { slug, name, parentSlug: parentSlug ?? undefined }
    },
    has: (slug) => find.get(slug) !== undefined,
    neededBy: (needed) => [
      ...children.all(needed).map(([slug]) => ({ kind: 'industries' as const, slug })),
      ...profile.all(needed).map(([slug]) => ({ kind: 'profiles' as const, slug })),
    ],
    remove: (slug) => void erase.run(slug),
  }
}
