import type { ContentKind, ContentRecords } from '../../../core/content/records.ts'
import type { ImportOptions, ImportReport } from '../../../core/ports.ts'
import type { Database } from './database.ts'
import type { Revisions } from './revisions.ts'
import { createShelves } from './shelves.ts'

/** `ContentAdministration` of the ports, synchronous. */
export interface ContentAdministration {
  importContent<K extends ContentKind>(
    kind: K,
    records: readonly ContentRecords[K][],
    options: ImportOptions,
  ): ImportReport
  exportContent<K extends ContentKind>(kind: K): Iterable<ContentRecords[K]>
  removeContent(kind: ContentKind, slugs: readonly string[]): { missing: string[]; used: string[] }
}

export function createContentAdministration(database: Database, revisions: Revisions): ContentAdministration {
  const shelves = createShelves(database)

  return {
    importContent(kind, records, { now, dryRun = false, progress }) {
      return database.transaction((rollback) => {
        const shelf = shelves[kind]
        const report = { created: 0, replaced: 0, unchanged: 0 }
        for (const [index, record] of records.entries()) {
          report[shelf.put(record, now)]++
          if ((index + 1) % 500 === 0) progress?.(index + 1)
        }
        // A dry run does everything and takes it back: what it reports is then what would be.
        if (dryRun) rollback()
        else if (report.created + report.replaced > 0) revisions.bump('content')
        return report
      })
    },

    exportContent: (kind) => shelves[kind].all(),

    removeContent(kind, slugs) {
      return database.transaction(() => {
        const shelf = shelves[kind]
        const removed = new Set(slugs)
        const stays = (other: { kind: ContentKind; slug: string }) =>
          other.kind !== kind || !removed.has(other.slug)
        const missing = [...removed].filter((slug) => !shelf.has(slug))
        const used = [...removed].filter((slug) => shelf.neededBy(slug).some(stays))
        if (removed.size > 0 && missing.length === 0 && used.length === 0) {
          for (const slug of removed) shelf.remove(slug)
          revisions.bump('content')
        }
        return { missing, used }
      })
    },
  }
}
