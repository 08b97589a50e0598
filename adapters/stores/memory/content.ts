import { andThen } from '../../../core/lib/promise.ts'
import { compareCodePoints } from '../../../core/lib/text.ts'
import type {
  ContentAdministration,
  ContentKind,
  ContentRecords,
  ImportReport,
} from '../../../core/ports/content.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import { type AuditRecord, removalAuditRecord } from '../../../core/audit/records.ts'
import { createImportLog, type Draft, toDrafts } from '../content-import.ts'
import { collect } from '../content-text.ts'
import { CONTENT_TABLES } from '../tables.ts'

/** All content, by kind and slug (banners: partner). `updatedAt` is the instant of the import that last changed a record. */
export type Content = { readonly [K in ContentKind]: Map<string, Draft<ContentRecords[K]>> }

export function createContent(): Content {
  return { profiles: new Map(), industries: new Map(), plans: new Map(), banners: new Map() }
}

/** @param onChange Called once after each change, with its audit records. */
export function createContentAdministration(
  content: Content,
  onChange: (auditRecords: readonly AuditRecord[], context: AuditContext) => void,
) {
  return {
    importContent(kind, source, { now, actor, dryRun, progress }) {
      return andThen(collect(source), (records): ImportReport => {
        const importLog = createImportLog(kind, progress)
        const changed = importLog.addAll(toDrafts(kind, records, now), (slug) => content[kind].get(slug)?.row)
        if (!dryRun && changed.length > 0) {
          // A copy of the record: the caller may change its own later.
          const { read } = CONTENT_TABLES[kind]
          for (const draft of changed) content[kind].set(draft.slug, { ...draft, record: read(draft.row) })
          onChange(importLog.auditRecords(), { actor, at: now })
        }
        return importLog.report
      })
    },

    exportContent(kind) {
      return [...content[kind].values()]
        .sort((a, b) => compareCodePoints(String(a.row[0]), String(b.row[0])))
        .map(({ record }) => record)
    },

    removeContent(kind, slugs, context, dryRun = false) {
      const removed = new Set(slugs)
      const missing = [...removed].filter((slug) => !content[kind].has(slug))
      const referenced = kind === 'industries' ? referencedIndustries(content, removed) : new Set<string>()
      const used = [...removed].filter((slug) => referenced.has(slug))
      if (!dryRun && removed.size > 0 && missing.length === 0 && used.length === 0) {
        for (const slug of removed) content[kind].delete(slug)
        onChange([removalAuditRecord(kind, removed)], context)
      }
      return { missing, used }
    },
  } satisfies ContentAdministration
}

/** The industries that profiles, or industries other than `removed`, refer to. */
function referencedIndustries({ profiles, industries }: Content, removed: ReadonlySet<string>): Set<string> {
  const remaining = [...industries.values()].filter(({ record }) => !removed.has(record.slug))
  return new Set([
    ...Array.from(profiles.values(), ({ record }) => record.industry),
    ...remaining.flatMap(({ record }) => record.parentSlug ?? []),
  ])
}
