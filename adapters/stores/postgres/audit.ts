import type { AuditLog } from '../../../core/ports/audit.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import type { WebhookEvent } from '../../../core/ports/webhooks.ts'
import { type AuditRecord, chainRecords } from '../../../core/audit/records.ts'
import { sha256 } from '../../digest.ts'
import type { StoredRow } from '../row-format.ts'
import { AUDIT_ENTRIES, AUDIT_READ_COLUMNS, readTailSequence } from '../tables.ts'
import { enqueueSql, eventRowsSql } from '../webhooks.ts'
import type { Query } from './connection.ts'
import type { Database } from './database.ts'
import { SqlError } from './errors.ts'
import { columnParameters, unnestColumns, WEBHOOK_DIALECT } from './sql.ts'

type HeadRow = [sequence: number, hash: string]

/** The removal of a partner has an entry for each key. */
const entriesPerStatement = 1000

const insertEntries = `
  INSERT INTO partner_api.audit (${AUDIT_ENTRIES.columns}, recency)
  SELECT ${AUDIT_ENTRIES.columns}, -at FROM ${
  unnestColumns(AUDIT_ENTRIES.columns)
} AS entry (${AUDIT_ENTRIES.columns})`

const enqueue = enqueueSql(WEBHOOK_DIALECT, eventRowsSql(WEBHOOK_DIALECT))

/**
 * `recency`, by which reports are sorted, is not hashed. An entry in which it was tampered with is read with an impossible
 * instant, so that the verification of the chain finds it.
 */
const readColumns = AUDIT_ENTRIES.columns.map((column, index) =>
  column === 'at'
    ? `CASE WHEN CAST(recency AS DOUBLE PRECISION) = -CAST(at AS DOUBLE PRECISION)
      THEN ${AUDIT_READ_COLUMNS[index]} ELSE CAST('Infinity' AS DOUBLE PRECISION) END`
    : AUDIT_READ_COLUMNS[index]
)

/** Triggers, rules, views and policies: whatever changes what statements on the tables do. */
const intruderQueries = [
  'SELECT tgname FROM pg_catalog.pg_trigger WHERE NOT tgisinternal AND tgrelid',
  "SELECT rulename FROM pg_catalog.pg_rewrite WHERE rulename <> '_RETURN' AND ev_class",
  "SELECT relname FROM pg_catalog.pg_class WHERE relkind IN ('v', 'm') AND oid",
  'SELECT polname FROM pg_catalog.pg_policy WHERE polrelid',
].map((select) => `
  ${select} IN (
    SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'partner_api'
  )`)

/**
 * Appends records within a transaction, as late as possible: it locks the end of the log, and every other change waits.
 *
 * @param events To be sent; not called without webhooks.
 * @returns The id of the last entry; undefined without records.
 */
export async function appendAuditRecords(
  query: Query,
  records: readonly AuditRecord[],
  context: AuditContext,
  events: () => readonly WebhookEvent[] = () => [],
): Promise<string | undefined> {
  if (records.length === 0) return undefined
  const [row] = await query<[...HeadRow, hasWebhooks: boolean]>(`
    SELECT audit_sequence, audit_hash, EXISTS (SELECT 1 FROM partner_api.webhook) FROM partner_api.store FOR UPDATE`)
  const [sequence, hash, hasWebhooks] = row!
  const added = hasWebhooks ? events() : []
  if (added.length > 0) await query(enqueue, [JSON.stringify(added)])
  const entries = chainRecords({ sequence, hash }, records, context, sha256)
  for (let start = 0; start < entries.length; start += entriesPerStatement) {
    const rows = entries.slice(start, start + entriesPerStatement).map(AUDIT_ENTRIES.values)
    await query(insertEntries, columnParameters(rows))
  }
  const last = entries.at(-1)!
  await query('UPDATE partner_api.store SET audit_sequence = $1, audit_hash = $2', [last.sequence, last.hash])
  return last.id
}

export async function hasAuditEntry(query: Query, id: string): Promise<boolean> {
  return (await query('SELECT 1 FROM partner_api.audit WHERE id = $1', [id])).length > 0
}

export function createAuditLog(database: Database): Required<AuditLog> {
  return {
    async listAudit(after, limit, partner) {
      if (after === Infinity) return []
      const { where, sequence, last } = entriesOf(partner, '$3')
      const rows = await database.read<StoredRow>(
        `SELECT ${readColumns} FROM partner_api.audit WHERE ${where} AND ${sequence} >= $1
        ORDER BY ${sequence} LIMIT $2`,
        [minSequenceAfter(after), limit, ...last],
      )
      return rows.map(AUDIT_ENTRIES.read)
    },

    async auditTail(count, partner) {
      const { where, sequence, last } = entriesOf(partner, '$2')
      const [row] = await database.read<[sequence: number]>(
        `SELECT CAST(sequence AS DOUBLE PRECISION) FROM partner_api.audit WHERE ${where}
        ORDER BY ${sequence} DESC LIMIT 1 OFFSET $1`,
        [count, ...last],
      )
      return readTailSequence(row)
    },

    async auditHead() {
      const [row] = await database.read<HeadRow>(
        'SELECT CAST(audit_sequence AS DOUBLE PRECISION), audit_hash FROM partner_api.store',
      )
      const [sequence, hash] = row!
      return { sequence, hash }
    },

    async auditIntruders() {
      const found = await Promise.all(intruderQueries.map((sql) => queryNames(database, sql)))
      return [...new Set(found.flat())].sort()
    },
  }
}

/** Entries of all or of one partner: SQL, and what follows the other parameters. */
function entriesOf(partner: string | undefined, parameter: string) {
  // Qualified: the output column of the same name is a cast, which has no index.
  if (partner === undefined) return { where: 'true', sequence: 'audit.sequence', last: [] }
  // The expression of the partner index: the planner must not scan the primary key for the entries of a partner.
  return { where: `partner = ${parameter}`, sequence: 'audit.sequence + 0', last: [partner] }
}

/** The least sequence after this one. Rows before the first one are someone's tampering, and listed, too. */
function minSequenceAfter(sequence: number): string {
  return sequence === -Infinity ? String(-(2n ** 63n)) : String(sequence + 1)
}

async function queryNames(database: Database, sql: string): Promise<string[]> {
  try {
    return (await database.read<[name: string]>(sql)).map(([name]) => name)
  } catch (error) {
    if (error instanceof SqlError && missingCatalog.has(error.code)) return []
    throw error
  }
}

/** undefined_table, undefined_column, feature_not_supported: not every compatible server has each catalog. */
const missingCatalog: ReadonlySet<string> = new Set(['42P01', '42703', '0A000'])
