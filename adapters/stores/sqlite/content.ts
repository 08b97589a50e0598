import type { Stamp } from '../../../core/audit/entry.ts'
import { after } from '../../../core/after.ts'
import type { ContentKind, ContentRecords, ProfileRecord } from '../../../core/content/records.ts'
import type { ImportOptions, ImportReport, MaybePromise } from '../../../core/ports.ts'
import { gather, RECORD_FORMATS } from '../record-text.ts'
import { StoreError } from '../store-error.ts'
import { createImportNotes, removalNote } from '../trail.ts'
import { type BulkImport, createBulkImport } from './bulk-import.ts'
import type { Database } from './database.ts'
import { refuseDuringImport } from './import-tables.ts'
import type { Revisions } from './revisions.ts'
import { createShelves } from './shelves.ts'
import type { Trail } from './trail.ts'

/** Profiles that one transaction writes: it holds the write lock for two seconds at most. */
const mostAtOnce = 5000

/** `ContentAdministration` of the ports, synchronous but for imports of many profiles. */
export interface ContentAdministration {
  importContent<K extends ContentKind>(
    kind: K,
    records: Iterable<ContentRecords[K]> | AsyncIterable<ContentRecords[K]>,
    options: ImportOptions,
  ): MaybePromise<ImportReport>
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

  let isBulkUnderWay = false

  function importAtOnce<K extends ContentKind>(
    kind: K,
    records: readonly ContentRecords[K][],
    { now, actor, dryRun = false, progress }: ImportOptions,
  ): ImportReport {
    const shelf = shelves[kind]
    const { slug } = RECORD_FORMATS[kind]
    const write = () => {
      if (!dryRun) refuseDuringImport(database)
      const notes = createImportNotes()
      const report = { created: 0, replaced: 0, unchanged: 0 }
      const changed = new Map<string, { record: ContentRecords[K]; text: string }>()
      for (const [index, record] of records.entries()) {
        const text = shelf.text(record)
        const before = changed.get(slug(record))?.text ?? shelf.find(slug(record))
        report[before === undefined ? 'created' : before === text ? 'unchanged' : 'replaced']++
        if (before !== text) {
          notes.changed(slug(record))
          changed.set(slug(record), { record, text })
        }
        if ((index + 1) % 500 === 0) progress?.(index + 1)
      }
      const note = dryRun ? undefined : notes.note(kind, report)
      if (note !== undefined) {
        shelf.write(Array.from(changed.values(), ({ record }) => record), now)
        trail.append([note], { actor, at: now })
        revisions.bump('content')
      }
      return report
    }
    return dryRun ? database.snapshot(write) : database.transaction(write)
  }

  async function importProfiles(
    records: Iterable<ProfileRecord> | AsyncIterable<ProfileRecord>,
    options: ImportOptions,
  ): Promise<ImportReport> {
    let bulk: BulkImport | undefined
    let some: ProfileRecord[] = []
    try {
      for await (const record of records) {
        some.push(record)
        if (some.length <= mostAtOnce) continue
        if (bulk === undefined) {
          if (isBulkUnderWay) throw new StoreError('refused', 'Another import into the store is under way.')
          isBulkUnderWay = true
          bulk = createBulkImport(database, revisions, trail, options)
        }
        bulk.stage(some)
        some = []
      }
      if (bulk === undefined) return importAtOnce('profiles', some, options)
      bulk.stage(some)
      const isNothingToWrite = options.dryRun || bulk.staged() === 0
      return isNothingToWrite ? bulk.report : await bulk.finish()
    } finally {
      bulk?.close()
      if (bulk) isBulkUnderWay = false
    }
  }

  return {
    importContent<K extends ContentKind>(
      kind: K,
      records: Iterable<ContentRecords[K]> | AsyncIterable<ContentRecords[K]>,
      options: ImportOptions,
    ): MaybePromise<ImportReport> {
      if (kind === 'profiles' && !(Array.isArray(records) && records.length <= mostAtOnce)) {
        return importProfiles(records as AsyncIterable<ProfileRecord>, options)
      }
      return after(gather(records), (all) => importAtOnce(kind, all, options))
    },

    exportContent: (kind) => shelves[kind].all(),

    removeContent(kind, slugs, stamp) {
      return database.transaction(() => {
        refuseDuringImport(database)
        const shelf = shelves[kind]
        const removed = new Set(slugs)
        const stays = (other: { kind: ContentKind; slug: string }) =>
          other.kind !== kind || !removed.has(other.slug)
        const missing = [...removed].filter((slug) => shelf.find(slug) === undefined)
        const used = [...removed].filter((slug) => shelf.neededBy(slug).some(stays))
        if (removed.size > 0 && missing.length === 0 && used.length === 0) {
          shelf.remove([...removed])
          trail.append([removalNote(kind, removed)], stamp)
          revisions.bump('content')
        }
        return { missing, used }
      })
    },
  }
}
