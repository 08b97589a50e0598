/** A database of an embedder, with its own schema and the companies of the sample content. */
import { DatabaseSync } from 'node:sqlite'
import { fixture, type IndustryLine, type ProfileLine } from '../support/world.ts'

/** Creates the database, without drafts and restricted profiles. */
export function makeShop(file: string): void {
  const shop = new DatabaseSync(file)
  shop.exec(`
    CREATE TABLE sector (id INTEGER PRIMARY KEY, code TEXT NOT NULL, label TEXT NOT NULL);
    CREATE TABLE company (
      handle TEXT PRIMARY KEY, title TEXT NOT NULL, tagline TEXT NOT NULL, country TEXT NOT NULL,
      sector_id INTEGER NOT NULL REFERENCES sector, live_since INTEGER NOT NULL, changed_at INTEGER NOT NULL,
      logo TEXT, about TEXT, homepage TEXT, city TEXT, keywords TEXT NOT NULL, mail TEXT
    );
    PRAGMA journal_mode = wal;
    BEGIN;`)
  const addSector = shop.prepare('INSERT INTO sector (code, label) VALUES (?, ?)')
  for (const { slug, name } of fixture<IndustryLine>('industries')) addSector.run(slug, name)
  const addCompany = shop.prepare(`
    INSERT INTO company SELECT ?, ?, ?, ?, id, ?, 0, ?, ?, ?, ?, ?, ? FROM sector WHERE code = ?`)
  for (const sample of fixture<ProfileLine>('profiles')) {
    if (sample.published_at === null || sample.visible_to !== null) continue
    addCompany.run(
      sample.slug,
      sample.name,
      sample.headline,
      sample.country,
      Date.parse(sample.published_at),
      sample.logo_url!,
      sample.description!,
      sample.website_url!,
      sample.city!,
      sample.tags!.join(','),
      sample.contact?.email ?? null,
      sample.industry,
    )
  }
  shop.exec('COMMIT')
  shop.close()
}

/** Renames a company, as the shop would: over a connection of its own. */
export function rename(file: string, handle: string, title: string): void {
  const shop = new DatabaseSync(file)
  shop.prepare('UPDATE company SET title = ? WHERE handle = ?').run(title, handle)
  shop.close()
}
