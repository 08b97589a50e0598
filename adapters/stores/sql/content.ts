/** Imports and removals of content, and the tables of the kinds that both databases store alike. */
import { type AuditRecord, importAuditRecord, removalAuditRecord } from '../../../core/audit/records.ts'
import { andThen, type MaybePromise } from '../../../core/lib/promise.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import type {
  ContentAdministration,
  ContentKind,
  ContentRecords,
  ImportReport,
} from '../../../core/ports/content.ts'
import {
  type AuditedChange,
  type Dialect,
  idsSql,
  idsText,
  query,
  upsertRowsSql,
  type Work,
} from './database.ts'
import type { StoredRow } from './row-format.ts'
import { CONTENT_TABLES } from './tables.ts'

/** A record to write, with its row. */
interface Draft<R> {
  readonly slug: string
  readonly record: R
  readonly row: StoredRow
  readonly updatedAt: number
}

/** Rows by slug. */
export type StoredRows = ReadonlyMap<string, StoredRow>

/** The table of one kind of content. Each method is a step of a transaction. */
export interface ContentTable<R> {
  /** Records per call, at most. */
  readonly batchSize: number
  /** The rows of the records with these slugs. They may have further columns. */
  find(slugs: readonly string[]): Work<StoredRows>
  /** Creates or replaces records, each slug once. @param stored What `find` returned for their slugs. */
  write(drafts: readonly Draft<R>[], stored: StoredRows): Work<void>
  remove(slugs: readonly string[]): Work<void>
  /** The slugs to which profiles, or records with other slugs, refer. Default: none. */
  findReferenced?(slugs: readonly string[]): Work<readonly string[]>
  /** Called after the last change of a transaction. */
  flush?(): Work<void>
}

export type ContentTables = { readonly [K in ContentKind]: ContentTable<ContentRecords[K]> }

/**
 * Runs `work` in a transaction that also writes its audit records and moves the revision; a dry run keeps nothing.
 *
 * @param work Without `writes`, it only reads. A dry run that writes is exact when records repeat a slug, too.
 */
export type RunContentChange = <T>(
  context: AuditContext,
  dryRun: boolean,
  work: (tables: ContentTables, writes: boolean) => Work<AuditedChange<T>>,
) => MaybePromise<T>

export function createContentAdministration(
  change: RunContentChange,
): Pick<ContentAdministration, 'importContent' | 'removeContent'> {
  return {
    importContent: (kind, source, { now, actor, dryRun = false, progress }) =>
      andThen(collect(source), (records) =>
        change({ actor, at: now }, dryRun, function* (tables, writes) {
          const table: ContentTable<ContentRecords[typeof kind]> = tables[kind]
          const importLog = createImportLog(kind, progress)
          for (let start = 0; start < records.length; start += table.batchSize) {
            const drafts = toDrafts(kind, records.slice(start, start + table.batchSize), now)
            const stored = yield* table.find(drafts.map(({ slug }) => slug))
            const changed = importLog.addAll(drafts, stored)
            if (writes) yield* table.write(changed, stored)
          }
          if (table.flush) yield* table.flush()
          return { result: importLog.report, auditRecords: importLog.auditRecords() }
        })),

    removeContent: (kind, slugs, context, dryRun = false) =>
      change(context, dryRun, function* (tables) {
        const removed = [...new Set(slugs)]
        const table = tables[kind]
        const referenced = table.findReferenced ? yield* table.findReferenced(removed) : []
        const stored = yield* table.find(removed)
        const missing = removed.filter((slug) => !stored.has(slug))
        const used = removed.filter((slug) => referenced.includes(slug))
        const isRefused = removed.length === 0 || missing.length > 0 || used.length > 0
        if (!dryRun && !isRefused) yield* table.remove(removed)
        if (table.flush) yield* table.flush()
        return {
          result: { missing, used },
          auditRecords: isRefused ? [] : [removalAuditRecord(kind, removed)],
        }
      }),
  }
}

/** The records of an import as a list: synchronous unless they arrive one by one. */
export function collect<R>(records: Iterable<R> | AsyncIterable<R>): MaybePromise<readonly R[]> {
  if (Array.isArray(records)) return records
  return Symbol.iterator in records ? [...records] : Array.fromAsync(records)
}

function toDrafts<K extends ContentKind>(
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
    if (stored === undefined) report.created++
    else if (isEqual) report.unchanged++
    else report.replaced++
    if (!isEqual && slugs.size < maxAuditedSlugs) slugs.add(String(row[0]))
    if (++done % 500 === 0) progress?.(done)
    return !isEqual
  }

  return {
    report: report as ImportReport,
    add,

    /** Adds all drafts. @returns Those to write: the last one of each slug that changes anything. */
    addAll<R>(drafts: readonly Draft<R>[], stored: StoredRows): Draft<R>[] {
      const changed = new Map<string, Draft<R>>()
      for (const draft of drafts) {
        const { slug, row } = draft
        if (add(row, changed.get(slug)?.row ?? stored.get(slug))) changed.set(slug, draft)
      }
      return [...changed.values()]
    },

    /** The audit record of the import; none when it changed nothing. */
    auditRecords(): readonly AuditRecord[] {
      return report.created + report.replaced === 0 ? [] : [importAuditRecord(kind, report, slugs)]
    },
  }
}

/** The kinds that nothing else follows from. */
export function createPlainTables(dialect: Dialect): Omit<ContentTables, 'profiles'> {
  return {
    industries: {
      ...createTable(dialect, 'industries'),
      // In one statement: foreign keys are checked at its end, and parents may come after children.
      batchSize: Infinity,
      *findReferenced(slugs) {
        const rows = yield* query<[slug: string]>(
          `SELECT needed.id FROM ${idsSql(dialect, '$1')} AS needed
          WHERE EXISTS (SELECT 1 FROM partner_api.profile p WHERE p.industry = needed.id) OR EXISTS (
            SELECT 1 FROM partner_api.industry i
            WHERE i.parent_slug = needed.id AND i.slug NOT IN ${idsSql(dialect, '$1')}
          )`,
          [idsText(slugs)],
        )
        return rows.map(([slug]) => slug)
      },
    },
    plans: createTable(dialect, 'plans'),
    banners: createTable(dialect, 'banners'),
  }
}

export function createTable<K extends ContentKind>(
  dialect: Dialect,
  kind: K,
): ContentTable<ContentRecords[K]> {
  const { name, columns, isDated } = CONTENT_TABLES[kind]
  const selected = `FROM partner_api.${name} WHERE ${columns[0]} IN ${idsSql(dialect, '$1')}`
  const upsert = upsertRowsSql(dialect, name, isDated ? [...columns, 'updated_at'] : columns)

  return {
    batchSize: 500,
    *find(slugs) {
      const rows = yield* query(`SELECT ${columns} ${selected}`, [idsText(slugs)])
      return new Map(rows.map((row) => [String(row[0]), row]))
    },
    *write(drafts) {
      const rows = drafts.map(({ row, updatedAt }) => isDated ? [...row, updatedAt] : row)
      if (rows.length > 0) yield* query(upsert, [JSON.stringify(rows)])
    },
    *remove(slugs) {
      yield* query(`DELETE ${selected}`, [idsText(slugs)])
    },
  }
}
