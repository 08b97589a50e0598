import type { AuditHead, Stamp } from '../../../core/audit/entry.ts'
import type { AuditTrail } from '../../../core/ports.ts'
import type { Synchronous } from '../answers.ts'
import { ENTRIES, READ_COLUMNS, readTail } from '../entry-rows.ts'
import type { StoredRow } from '../row-format.ts'
import { type Note, sealNotes } from '../trail.ts'
import type { Database } from './database.ts'

/** `AuditTrail` of the ports, and the only way to write to it. */
export interface Trail extends Synchronous<AuditTrail> {
  /** To be called in the transaction of what is noted. */
  append(notes: readonly Note[], stamp: Stamp): void
}

export function createTrail(database: Database): Trail {
  const head = database.statement<[sequence: number, seal: string]>(
    'SELECT CAST(audit_sequence AS REAL), audit_seal FROM store',
  )
  const moveHead = database.statement('UPDATE store SET audit_sequence = ?1, audit_seal = ?2')
  const insert = database.statement(
    `INSERT INTO audit (${ENTRIES.columns}) VALUES (${ENTRIES.columns.map((_, index) => `?${index + 1}`)})`,
  )
  const list = database.statement<StoredRow>(
    `SELECT ${READ_COLUMNS} FROM audit WHERE sequence > ?1 ORDER BY sequence LIMIT ?2 + 0`,
  )
  const listOfPartner = database.statement<StoredRow>(`
    SELECT ${READ_COLUMNS} FROM audit WHERE partner = ?3 AND sequence > ?1 ORDER BY sequence LIMIT ?2 + 0`)
  const tail = database.statement<[sequence: number]>(
    'SELECT CAST(sequence AS REAL) FROM audit ORDER BY sequence DESC LIMIT 1 OFFSET ?1 + 0',
  )
  const tailOfPartner = database.statement<[sequence: number]>(`
    SELECT CAST(sequence AS REAL) FROM audit WHERE partner = ?2 ORDER BY sequence DESC LIMIT 1 OFFSET ?1 + 0`)
  // The store has neither of its own.
  const intruders = database.statement<[name: string]>(
    "SELECT name FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY name",
  )

  function auditHead(): AuditHead {
    const [sequence, seal] = head.get()!
    return { sequence, seal }
  }

  return {
    append(notes, stamp) {
      const entries = sealNotes(auditHead(), notes, stamp)
      for (const entry of entries) insert.run(...ENTRIES.values(entry))
      const last = entries.at(-1)
      if (last !== undefined) moveHead.run(last.sequence, last.seal)
    },
    listAudit(after, limit, partner) {
      const rows = partner === undefined ? list.all(after, limit) : listOfPartner.all(after, limit, partner)
      return rows.map(ENTRIES.read)
    },
    auditTail: (count, partner) =>
      readTail(partner === undefined ? tail.get(count) : tailOfPartner.get(count, partner)),
    auditHead,
    auditIntruders: () => intruders.all().map(([name]) => name),
  }
}
