import type { ContentKind, ContentRecords } from '../../../core/content/records.ts'
import type { ImportOptions, ImportReport } from '../../../core/ports.ts'
import { RECORD_FORMATS } from '../record-text.ts'
import { createImportNotes, type Note } from '../trail.ts'

/** A record as it is kept. `text` is its canonical form: what equality means. */
export interface Kept<R> {
  readonly record: R
  readonly text: string
  /** The instant of the import that created or last replaced the record. */
  readonly updatedAt: number
}

/** The content of a memory store, by kind and slug. */
export type Shelves = { readonly [K in ContentKind]: Map<string, Kept<ContentRecords[K]>> }

export function createShelves(): Shelves {
  return { profiles: new Map(), industries: new Map(), plans: new Map(), banners: new Map() }
}

/**
 * Creates or replaces records; `ImportOptions` say how. Nothing is written before every record has been read.
 *
 * @returns What was done or would have been, and what the audit trail is to say of what was.
 */
export function importRecords<K extends ContentKind>(
  shelves: Shelves,
  kind: K,
  records: readonly ContentRecords[K][],
  options: ImportOptions,
): { report: ImportReport; note: Note | undefined } {
  const format = RECORD_FORMATS[kind]
  const shelf = shelves[kind]
  const written = new Map<string, Kept<ContentRecords[K]>>()
  const notes = createImportNotes()
  const report = { created: 0, replaced: 0, unchanged: 0 }
  for (const [index, record] of records.entries()) {
    const slug = format.slug(record)
    const text = format.text(record)
    const existing = written.get(slug) ?? shelf.get(slug)
    if (existing?.text === text) {
      report.unchanged++
    } else {
      report[existing ? 'replaced' : 'created']++
      notes.changed(slug)
      // A copy: what the caller does to the record later is none of the store's.
      written.set(slug, { record: format.read(text), text, updatedAt: options.now })
    }
    if ((index + 1) % 500 === 0) options.progress?.(index + 1)
  }
  if (options.dryRun) return { report, note: undefined }
  for (const [slug, kept] of written) shelf.set(slug, kept)
  return { report, note: notes.note(kind, report) }
}

/** What keeps the records from being removed; see `ContentAdministration.removeContent`. */
export function removalObstacles(
  shelves: Shelves,
  kind: ContentKind,
  slugs: ReadonlySet<string>,
): { missing: string[]; used: string[] } {
  const needed = new Set<string>()
  if (kind === 'industries') {
    for (const { record } of shelves.profiles.values()) needed.add(record.industry)
    for (const { record } of shelves.industries.values()) {
      if (record.parentSlug !== undefined && !slugs.has(record.slug)) needed.add(record.parentSlug)
    }
  }
  return {
    missing: [...slugs].filter((slug) => !shelves[kind].has(slug)),
    used: [...slugs].filter((slug) => needed.has(slug)),
  }
}
