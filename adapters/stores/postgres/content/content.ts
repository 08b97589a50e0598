import type { ContentKind } from '../../../../core/content/records.ts'
import type { ContentAdministration } from '../../../../core/ports.ts'
import { gather, RECORD_FORMATS } from '../../record-text.ts'
import { createImportNotes, removalNote } from '../../trail.ts'
import type { Database } from '../connection/database.ts'
import { decide } from '../records/decide.ts'
import { exportRecords } from './export.ts'
import type { Revisions } from '../revisions.ts'
import { openShelf } from './shelves.ts'
import type { Trail } from '../records/trail.ts'

export function createContentAdministration(
  database: Database,
  revisions: Revisions,
  trail: Trail,
): ContentAdministration {
  const books = { database, revisions, trail }

  return {
    async importContent(kind, source, { now, actor, dryRun = false, progress }) {
      const records = await gather(source)
      const report = await decide(books, 'content', { actor, at: now }, async (query) => {
        const shelf = openShelf(kind, query)
        const { slug } = RECORD_FORMATS[kind]
        const notes = createImportNotes()
        const report = { created: 0, replaced: 0, unchanged: 0 }
        for (let start = 0; start < records.length; start += shelf.atOnce) {
          const some = records.slice(start, start + shelf.atOnce)
          const outcomes = await shelf.put(some, now)
          for (const [index, outcome] of outcomes.entries()) {
            report[outcome]++
            if (outcome !== 'unchanged') notes.changed(slug(some[index]!))
          }
          progress?.(start + some.length)
        }
        await shelf.finish()
        // A dry run does everything and takes it back: what it reports is then what would be.
        const note = dryRun ? undefined : notes.note(kind, report)
        return { result: report, notes: note === undefined ? [] : [note] }
      })
      if (!dryRun) await refreshStatistics(database, kind, report.created + report.replaced)
      return report
    },

    exportContent: (kind) => exportRecords(database, kind),

    removeContent(kind, slugs, stamp) {
      return decide(books, 'content', stamp, async (query) => {
        const shelf = openShelf(kind, query)
        const removed = [...new Set(slugs)]
        if (removed.length === 0) return { result: { missing: [], used: [] }, notes: [] }
        const found = await shelf.find(removed)
        const needed = await shelf.findNeeded(removed)
        const missing = removed.filter((slug) => !found.has(slug))
        const used = removed.filter((slug) => needed.has(slug))
        if (missing.length > 0 || used.length > 0) return { result: { missing, used }, notes: [] }
        await shelf.remove(removed)
        await shelf.finish()
        return { result: { missing, used }, notes: [removalNote(kind, removed)] }
      })
    },
  }
}

/** Records whose import changes how the server had better look for them. */
const many = 1000

/**
 * Has the server look at what an import wrote, before it does so by itself after a minute: until then it takes tables
 * for what they were when it last made its plans, and a page of a million profiles for a matter of sorting them. The
 * vacuum lets it read pages off the indexes alone, and sorts the words in. Where none of this may be asked for, or is
 * unknown, the import was one all the same.
 */
async function refreshStatistics(
  database: Database,
  kind: ContentKind,
  changed: number,
): Promise<void> {
  if (kind !== 'profiles' || changed < many) return
  for (
    const command of [
      'ANALYZE partner_api.listing',
      'VACUUM partner_api.listing',
      'ANALYZE partner_api.profile',
    ]
  ) {
    await database.write(command).catch(() => undefined)
  }
}
