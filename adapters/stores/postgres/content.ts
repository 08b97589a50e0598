import type { ContentAdministration, ContentKind, ContentRecords } from '../../../core/ports/content.ts'
import { createImportAudit, removalAuditRecord } from '../audit-log.ts'
import { collect, RECORD_FORMATS } from '../content-text.ts'
import { StoreError } from '../store-error.ts'
import type { PostgresAuditLog } from './audit.ts'
import { runAudited } from './audited-change.ts'
import type { Database, Row } from './database.ts'
import { openContentTable, PROFILE_COLUMNS, type ProfileRow, readProfile } from './content-tables.ts'
import type { Revisions } from './revisions.ts'

export function createContentAdministration(
  database: Database,
  revisions: Revisions,
  auditLog: PostgresAuditLog,
): ContentAdministration {
  const deps = { database, revisions, trail: auditLog }

  return {
    async importContent(kind, source, { now, actor, dryRun = false, progress }) {
      const records = await collect(source)
      const report = await runAudited(deps, 'content', { actor, at: now }, async (query) => {
        const table = openContentTable(kind, query)
        const { slug } = RECORD_FORMATS[kind]
        const importAudit = createImportAudit()
        const report = { created: 0, replaced: 0, unchanged: 0 }
        for (let start = 0; start < records.length; start += table.batchSize) {
          const batch = records.slice(start, start + table.batchSize)
          const outcomes = await table.upsert(batch, now)
          for (const [index, outcome] of outcomes.entries()) {
            report[outcome]++
            if (outcome !== 'unchanged') importAudit.addChanged(slug(batch[index]!))
          }
          progress?.(start + batch.length)
        }
        await table.flush()
        // A dry run does everything and takes it back: what it reports is then what would be.
        const auditRecord = dryRun ? undefined : importAudit.toRecord(kind, report)
        return { result: report, auditRecords: auditRecord === undefined ? [] : [auditRecord] }
      })
      if (!dryRun) await refreshStatistics(database, kind, report.created + report.replaced)
      return report
    },

    exportContent: (kind) => exportRecords(database, kind),

    removeContent(kind, slugs, stamp) {
      return runAudited(deps, 'content', stamp, async (query) => {
        const table = openContentTable(kind, query)
        const removed = [...new Set(slugs)]
        if (removed.length === 0) return { result: { missing: [], used: [] }, auditRecords: [] }
        const existing = await table.findExisting(removed)
        const referenced = await table.findReferenced(removed)
        const missing = removed.filter((slug) => !existing.has(slug))
        const used = removed.filter((slug) => referenced.has(slug))
        if (missing.length > 0 || used.length > 0) return { result: { missing, used }, auditRecords: [] }
        await table.remove(removed)
        await table.flush()
        return { result: { missing, used }, auditRecords: [removalAuditRecord(kind, removed)] }
      })
    },
  }
}

/** Records whose import changes how the server had better look for them. */
const statisticsThreshold = 1000

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
  if (kind !== 'profiles' || changed < statisticsThreshold) return
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

/** Rows that are read at once. */
const pageRows = 1000

/** How the records of a kind are read: rows begin with their slug. */
interface ExportSource<R> {
  readonly columns: string | readonly string[]
  readonly table: string
  readonly primary: string
  read(row: Row): R
}

const exportSources: { readonly [K in ContentKind]: ExportSource<ContentRecords[K]> } = {
  profiles: {
    columns: PROFILE_COLUMNS,
    table: 'profile',
    primary: 'slug',
    read: (row) => readProfile(row as unknown as ProfileRow),
  },
  industries: {
    columns: 'slug, name, parent_slug',
    table: 'industry',
    primary: 'slug',
    read(row) {
      const [slug, name, parentSlug] = row as [string, string, string | null]
      return { slug, name, parentSlug: parentSlug ?? undefined }
    },
  },
  plans: {
    columns: 'slug, record',
    table: 'plan',
    primary: 'slug',
    read: ([, text]) => RECORD_FORMATS.plans.read(text as string),
  },
  banners: {
    columns: 'partner, record',
    table: 'banner',
    primary: 'partner',
    read: ([, text]) => RECORD_FORMATS.banners.read(text as string),
  },
}

/**
 * All records of a kind, by slug, as they are when the first one is read. No more of them are held than two pages,
 * and the transaction that reads them lasts until the last one is taken or no more are wanted.
 */
export async function* exportRecords<K extends ContentKind>(
  database: Database,
  kind: K,
): AsyncGenerator<ContentRecords[K], void, undefined> {
  const { columns, table, primary, read } = exportSources[kind]
  const select = `
    SELECT ${columns} FROM partner_api.${table} WHERE ${primary} > $1 ORDER BY ${primary} LIMIT ${pageRows}`
  const { readable, writable } = new TransformStream<Row[], Row[]>()
  const pages = writable.getWriter()
  let hasStarted = false

  const reading = database.transaction(async (query) => {
    if (hasStarted) {
      const message = `The store ${database.place} was lost while all of its ${kind} were read: try again.`
      throw new StoreError('unreachable', message)
    }
    for (let after = '', last = false; !last;) {
      const rows = await query<Row>(select, [after])
      last = rows.length < pageRows
      after = String(rows.at(-1)?.[0] ?? '')
      hasStarted = true
      await pages.write(rows)
    }
  }, { readOnly: true }).then(() => pages.close(), (error) => pages.abort(error))
  // Whatever went wrong is told to who takes the pages.
  reading.catch(() => undefined)

  for await (const rows of readable) {
    for (const row of rows) yield read(row)
  }
}
