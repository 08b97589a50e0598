/** Imports of content: which records they write, and their report. All stores share these rules. */
import type { ContentKind, ContentRecords, ImportReport } from '../../core/ports/content.ts'
import { type AuditRecord, importAuditRecord } from '../../core/audit/records.ts'
import type { StoredRow } from './row-format.ts'
import { CONTENT_TABLES } from './tables.ts'

/** A record to write, with its row. */
export interface Draft<R> {
  readonly slug: string
  readonly record: R
  readonly row: StoredRow
  readonly updatedAt: number
}

export function toDrafts<K extends ContentKind>(
  kind: K,
  records: readonly ContentRecords[K][],
  updatedAt: number,
): Draft<ContentRecords[K]>[] {
  const { values } = CONTENT_TABLES[kind]
  return records.map((record) => {
    const row = values(record)
    return { slug: String(row[0]), record, row, updatedAt }
  })
}

/** Slugs in the audit record of an import, at most. */
const maxAuditedSlugs = 100

/** Counts what an import changes, and lists the first changed slugs for the audit log. */
export function createImportLog(kind: ContentKind, progress?: (done: number) => void) {
  const report = { created: 0, replaced: 0, unchanged: 0 }
  const slugs = new Set<string>()
  let done = 0

  /** @returns Whether a row differs from the stored one, which it replaces. */
  function add(row: StoredRow, stored: StoredRow | undefined): boolean {
    const isEqual = stored !== undefined && row.every((value, column) => value === stored[column])
    report[stored === undefined ? 'created' : isEqual ? 'unchanged' : 'replaced']++
    if (!isEqual && slugs.size < maxAuditedSlugs) slugs.add(String(row[0]))
    if (++done % 500 === 0) progress?.(done)
    return !isEqual
  }

  return {
    report: report as ImportReport,
    add,

    /** Adds all drafts. @returns Those to write: the last one of each slug that changes anything. */
    addAll<R>(drafts: readonly Draft<R>[], find: (slug: string) => StoredRow | undefined): Draft<R>[] {
      const changed = new Map<string, Draft<R>>()
      for (const draft of drafts) {
        const { slug, row } = draft
        if (add(row, changed.get(slug)?.row ?? find(slug))) changed.set(slug, draft)
      }
      return [...changed.values()]
    },

    /** The audit record of the import; none when it changed nothing. */
    auditRecords(): readonly AuditRecord[] {
      return report.created + report.replaced === 0 ? [] : [importAuditRecord(kind, report, slugs)]
    },
  }
}
