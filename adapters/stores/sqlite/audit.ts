import type { AuditHead, AuditLog } from '../../../core/ports/audit.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import { type AuditRecord, chainRecords } from '../../../core/audit/records.ts'
import { sha256 } from '../../digest.ts'
import type { StoredRow } from '../row-format.ts'
import { AUDIT_ENTRIES, AUDIT_READ_COLUMNS, readTailSequence } from '../tables.ts'
import { type Database, placeholders } from './database.ts'

export interface SqliteAuditLog extends AuditLog {
  /** To be called in the transaction of the change. */
  append(auditRecords: readonly AuditRecord[], context: AuditContext): void
}

export function createAuditLog(database: Database): SqliteAuditLog {
  const selectHead = database.statement<[sequence: number, hash: string]>(
    'SELECT CAST(audit_sequence AS REAL), audit_hash FROM store',
  )
  const updateHead = database.statement('UPDATE store SET audit_sequence = ?1, audit_hash = ?2')
  const { columns } = AUDIT_ENTRIES
  const insertEntry = database.statement(`INSERT INTO audit (${columns}) VALUES (${placeholders(columns)})`)
  const selectEntries = database.statement<StoredRow>(
    `SELECT ${AUDIT_READ_COLUMNS} FROM audit WHERE sequence > ?1 ORDER BY sequence LIMIT ?2 + 0`,
  )
  const selectPartnerEntries = database.statement<StoredRow>(`
    SELECT ${AUDIT_READ_COLUMNS} FROM audit WHERE partner = ?3 AND sequence > ?1 ORDER BY sequence LIMIT ?2 + 0`)
  const selectTail = database.statement<[sequence: number]>(
    'SELECT CAST(sequence AS REAL) FROM audit ORDER BY sequence DESC LIMIT 1 OFFSET ?1 + 0',
  )
  const selectPartnerTail = database.statement<[sequence: number]>(`
    SELECT CAST(sequence AS REAL) FROM audit WHERE partner = ?2 ORDER BY sequence DESC LIMIT 1 OFFSET ?1 + 0`)
  // The store itself has no triggers or views.
  const selectIntruders = database.statement<[name: string]>(
    "SELECT name FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY name",
  )

  function auditHead(): AuditHead {
    const [sequence, hash] = selectHead.get()!
    return { sequence, hash }
  }

  return {
    listAudit(after, limit, partner) {
      const rows = partner === undefined
        ? selectEntries.all(after, limit)
        : selectPartnerEntries.all(after, limit, partner)
      return rows.map(AUDIT_ENTRIES.read)
    },
    auditTail: (count, partner) =>
      readTailSequence(partner === undefined ? selectTail.get(count) : selectPartnerTail.get(count, partner)),
    auditHead,
    auditIntruders: () => selectIntruders.all().map(([name]) => name),

    append(auditRecords, context) {
      const entries = chainRecords(auditHead(), auditRecords, context, sha256)
      for (const entry of entries) insertEntry.run(...AUDIT_ENTRIES.values(entry))
      const last = entries.at(-1)
      if (last !== undefined) updateHead.run(last.sequence, last.hash)
    },
  }
}
