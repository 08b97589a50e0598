import type { Stamp } from '../../../core/audit/entry.ts'
import type { ContentKind, ContentRecords } from '../../../core/content/records.ts'
import type { ImportOptions, ImportReport } from '../../../core/ports.ts'
import { RECORD_FORMATS } from '../record-text.ts'
import { createImportNotes, removalNote } from '../trail.ts'
import type { Database } from './database.ts'
import type { Revisions } from './revisions.ts'
import { createShelves } from './shelves.ts'
import type { Trail } from './trail.ts'

/** `ContentAdministration` of the ports, synchronous. */
export interface ContentAdministration {
  importContent<K extends ContentKind>(
    kind: K,
    records: readonly ContentRecords[K][],
    options: ImportOptions,
  ): ImportReport
  exportContent<K extends ContentKind>(kind: K): Iterable<ContentRecords[K]>
  removeContent(
    kind: ContentKind,
    slugs: readonly string[],
    stamp: Stamp,
  ): { missing: string[]; used: string[] }
}

export function createContentAdministration(
  database: Database,
  revisions: Revisions,
  trail: Trail,
): ContentAdministration {
  const shelves = createShelves(database)

  return {
    importContent(kind, records, { now, actor, dryRun = false, progress }) {
      return database.transaction((rollback) => {
        const shelf = shelves[kind]
        const { slug } = RECORD_FORMATS[kind]
        const notes = createImportNotes()
        const report = { created: 0, replaced: 0, unchanged: 0 }
        for (const [index, record] of records.entries()) {
          const outcome = shelf.put(record, now)
          report[outcome]++
          if (outcome !== 'unchanged') notes.changed(slug(record))
          if ((index + 1) % 500 === 0) progress?.(index + 1)
        }
        // A dry run does everything and takes it back: what it reports is then what would be.
        if (dryRun) {
          rollback()
          return report
        }
        const note = notes.note(kind, report)
        if (note !== undefined) {
          trail.append([note], { actor, at: now })
          revisions.bump('content')
        }
        return report
      })
    },

    exportContent: (kind) => shelves[kind].all(),

    removeContent(kind, slugs, stamp) {
      return database.transaction(() => {
        const shelf = shelves[kind]
        const removed = new Set(slugs)
        const stays = (other: { kind: ContentKind; slug: string }) =>
          other.kind !== kind || !removed.has(other.slug)
        const missing = [...removed].filter((slug) => !shelf.has(slug))
        const used = [...removed].filter((slug) => shelf.neededBy(slug).some(stays))
        if (removed.size > 0 && missing.length === 0 && used.length === 0) {
          for (const slug of removed) shelf.remove(slug)
          trail.append([removalNote(kind, removed)], stamp)
          revisions.bump('content')
        }
        return { missing, used }
      })
    },
  }
}
