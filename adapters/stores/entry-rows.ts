import type { AuditEntry } from '../../core/audit/entry.ts'
import { createRowFormat, type RowFormat } from './row-format.ts'

/** The entries of the audit trail. */
export const ENTRIES: RowFormat<AuditEntry> = createRowFormat<AuditEntry>({
  sequence: 'sequence',
  id: 'id',
  at: 'at',
  actor: 'actor',
  type: 'type',
  partner: 'partner',
  keyId: 'key_id',
  subject: 'subject',
  before: 'before',
  after: 'after',
  seal: 'seal',
}, { sequence: { encode: Number, decode: readSequence } })

/**
 * The columns as they are read. Somebody may have put numbers there that a driver would throw at, because no integer of
 * JavaScript's is that large: as floating point they can be read.
 */
export const READ_COLUMNS: readonly string[] = ENTRIES.columns.map((column) =>
  column === 'sequence' || column === 'at' ? `CAST(${column} AS DOUBLE PRECISION)` : column
)

/** The position that the sequence in front of a trail's tail stands for. */
export function readTail(row: readonly [sequence: number] | undefined): number {
  return row === undefined ? -Infinity : readSequence(row[0])
}

/** Not the nearest number that there is: many rows would have the same, and a reader would not get past them. */
function readSequence(sequence: number): number {
  return Number.isSafeInteger(sequence) ? sequence : sequence * Infinity
}
