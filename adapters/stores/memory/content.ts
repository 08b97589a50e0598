import { andThen } from '../../../core/lib/promise.ts'
import { compareCodePoints } from '../../../core/lib/text.ts'
import type {
  ContentAdministration,
  ContentKind,
  ContentRecords,
  ImportReport,
} from '../../../core/ports/content.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import { type AuditRecord, createImportLog, removalAuditRecord } from '../audit-log.ts'
import { collect } from '../content-text.ts'
import type { StoredRow } from '../row-format.ts'
import { CONTENT_TABLES } from '../tables.ts'

/** A record and its row: equal records have equal rows. */
export interface StoredRecord<R> {
  readonly record: R
  readonly row: StoredRow
  /** The instant of the import that created or last replaced the record. */
  readonly updatedAt: number
}

/** All content, by kind and slug (banners: partner). */
export type Content = { readonly [K in ContentKind]: Map<string, StoredRecord<ContentRecords[K]>> }

export function createContent(): Content {
  return { profiles: new Map(), industries: new Map(), plans: new Map(), banners: new Map() }
}

/** @param changed Called once after each change, with its audit records. */
export function createContentAdministration(
  content: Content,
  changed: (auditRecords: readonly AuditRecord[], context: AuditContext) => void,
) {
  return {
    importContent(kind, source, { now, actor, dryRun, progress }) {
      return andThen(collect(source), (records): ImportReport => {
        const importLog = createImportLog(kind, progress)
        const written = replaceRecords(content, kind, records, importLog, now)
        if (!dryRun && written.size > 0) {
          for (const [slug, stored] of written) content[kind].set(slug, stored)
          changed(importLog.auditRecords(), { actor, at: now })
        }
        return importLog.report
      })
    },

    exportContent(kind) {
      return [...content[kind].values()]
        .sort((a, b) => compareCodePoints(String(a.row[0]), String(b.row[0])))
        .map(({ record }) => record)
    },

    removeContent(kind, slugs, context) {
      const removed = new Set(slugs)
      const missing = [...removed].filter((slug) => !content[kind].has(slug))
      const used = kind === 'industries'
        ? [...removed.intersection(referencedIndustries(content, removed))]
        : []
      if (removed.size > 0 && missing.length === 0 && used.length === 0) {
        for (const slug of removed) content[kind].delete(slug)
        changed([removalAuditRecord(kind, removed)], context)
      }
      return { missing, used }
    },
  } satisfies ContentAdministration
}

/** The records that differ from stored ones, as they are to be stored. */
function replaceRecords<K extends ContentKind>(
  content: Content,
  kind: K,
  records: readonly ContentRecords[K][],
  importLog: ReturnType<typeof createImportLog>,
  now: number,
): Map<string, StoredRecord<ContentRecords[K]>> {
  const { values, read } = CONTENT_TABLES[kind]
  const written = new Map<string, StoredRecord<ContentRecords[K]>>()
  for (const record of records) {
    const row = values(record)
    const slug = String(row[0])
    if (!importLog.add(row, (written.get(slug) ?? content[kind].get(slug))?.row)) continue
    // Read back from the row: the caller may change its record later.
    written.set(slug, { record: read(row), row, updatedAt: now })
  }
  return written
}

/** The industries that profiles, or industries other than `removed`, refer to. */
function referencedIndustries({ profiles, industries }: Content, removed: ReadonlySet<string>): Set<string> {
  const remaining = [...industries.values()].filter(({ record }) => !removed.has(record.slug))
  return new Set([
    ...Array.from(profiles.values(), ({ record }) => record.industry),
    ...remaining.flatMap(({ record }) => record.parentSlug ?? []),
  ])
}
