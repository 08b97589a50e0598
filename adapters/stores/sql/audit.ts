import { type AuditRecord, chainRecords } from '../../../core/audit/records.ts'
import { andThen } from '../../../core/lib/promise.ts'
import type { AuditLog } from '../../../core/ports/audit.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import type { WebhookEvent } from '../../../core/ports/webhooks.ts'
import { sha256 } from '../../digest.ts'
import { type Dialect, query, rowsSql, rowsText, type SqlReader, type Work, writeRows } from './database.ts'
import { safeColumns } from './row-format.ts'
import { AUDIT_ENTRIES, readSequence } from './tables.ts'
import { enqueueSql, EVENTS } from './webhooks.ts'

/**
 * `recency`, by which reports are sorted, is not hashed. An entry in which it was tampered with is read with an
 * impossible instant, so that the verification of the chain finds it.
 */
const readColumns = safeColumns(AUDIT_ENTRIES.columns).map((safe, index) =>
  AUDIT_ENTRIES.columns[index] === 'at'
    ? `CASE WHEN CAST(recency AS NUMERIC) = -CAST(at AS NUMERIC) THEN ${safe} ELSE 'Infinity' END`
    : safe
)

// As text: tampering can have left an integer that no driver reads.
const selectHead = 'SELECT CAST(audit_sequence AS TEXT), audit_hash'

/**
 * Appends records within a transaction, as late as possible: it locks the end of the log, and every other change waits.
 *
 * @param events To be sent; not called without webhooks.
 * @returns The id of the last entry; undefined without records.
 */
export function* appendAuditRecords(
  dialect: Dialect,
  records: readonly AuditRecord[],
  context: AuditContext,
  events: () => readonly WebhookEvent[] = () => [],
): Work<string | undefined> {
  if (records.length === 0) return undefined
  const [row] = yield* query<[sequence: string, hash: string, hasWebhooks: number]>(
    `${selectHead}, EXISTS (SELECT 1 FROM partner_api.webhook) FROM partner_api.store ${dialect.forUpdate}`,
  )
  const [sequence, hash, hasWebhooks] = row!
  const added = hasWebhooks ? events() : []
  if (added.length > 0) yield* query(enqueueSql(dialect), [rowsText(EVENTS, added)])
  const entries = chainRecords({ sequence: Number(sequence), hash }, records, context, sha256)
  const { columns } = AUDIT_ENTRIES
  const derived = dialect.derived({ recency: '-at' })
  yield* writeRows(
    `INSERT INTO partner_api.audit (${[...columns, ...Object.keys(derived)]})
    SELECT ${[...columns, ...Object.values(derived)]} FROM ${rowsSql(dialect, columns)} AS entry`,
    AUDIT_ENTRIES,
    entries,
  )
  const last = entries.at(-1)!
  yield* query('UPDATE partner_api.store SET audit_sequence = $1, audit_hash = $2', [
    last.sequence,
    last.hash,
  ])
  return last.id
}

export function createAuditLog(
  { read, dialect }: SqlReader,
): Omit<AuditLog, 'auditIntruders'> {
  /** Entries of all or of one partner: SQL, and what follows the other parameters. */
  function entriesOf(partner: string | undefined, parameter: string) {
    // Qualified: the output column of the same name is a cast, which has no index.
    if (partner === undefined) return { where: 'true', sequence: 'audit.sequence', last: [] }
    return { where: `partner = ${parameter}`, sequence: dialect.indexed('audit.sequence'), last: [partner] }
  }

  return {
    listAudit(after, limit, partner) {
      if (after === Infinity) return []
      const { where, sequence, last } = entriesOf(partner, '$3')
      return andThen(
        read(
          `SELECT ${readColumns} FROM partner_api.audit WHERE ${where} AND ${sequence} >= CAST($1 AS BIGINT)
          ORDER BY ${sequence} LIMIT CAST($2 AS BIGINT)`,
          [minSequenceAfter(after), limit, ...last],
        ),
        (rows) => rows.map(AUDIT_ENTRIES.read),
      )
    },

    auditTail(count, partner) {
      const { where, sequence, last } = entriesOf(partner, '$2')
      return andThen(
        read<[sequence: string]>(
          `SELECT CAST(sequence AS TEXT) FROM partner_api.audit WHERE ${where}
          ORDER BY ${sequence} DESC LIMIT 1 OFFSET CAST($1 AS BIGINT)`,
          [count, ...last],
        ),
        ([row]) => row === undefined ? -Infinity : readSequence(row[0]),
      )
    },

    auditHead: () =>
      andThen(read<[sequence: string, hash: string]>(`${selectHead} FROM partner_api.store`), ([row]) => {
        const [sequence, hash] = row!
        return { sequence: Number(sequence), hash }
      }),
  }
}

/** The least sequence after this one. Rows before the first one are someone's tampering, and listed, too. */
function minSequenceAfter(sequence: number): string {
  return sequence === -Infinity ? String(-(2n ** 63n)) : String(sequence + 1)
}
