import type { AuditedType, AuditEntry } from '../../core/audit/entry.ts'

/** The columns of an entry of the audit trail, in the order of `EntryRow`. */
export const ENTRY_COLUMNS = [
  'sequence',
  'id',
  'at',
  'actor',
  'type',
  'partner',
  'key_id',
  'subject',
  'before',
  'after',
  'seal',
] as const

/**
 * The columns as they are read. Somebody may have put numbers there that a driver would throw at, because no integer of
 * JavaScript's is that large: as floating point they can be read.
 */
export const READ_COLUMNS: readonly string[] = ENTRY_COLUMNS.map((column) =>
  column === 'sequence' || column === 'at' ? `CAST(${column} AS DOUBLE PRECISION)` : column
)

export type EntryRow = [
  sequence: number,
  id: string,
  at: number,
  actor: string,
  type: string,
  partner: string | null,
  keyId: string | null,
  subject: string | null,
  before: string | null,
  after: string | null,
  seal: string,
]

export function entryRow(entry: AuditEntry): EntryRow {
  const { sequence, id, at, actor, type, partner, keyId, subject, before, after, seal } = entry
  return [
    sequence,
    id,
    at,
    actor,
    type,
    partner ?? null,
    keyId ?? null,
    subject ?? null,
    before ?? null,
    after ?? null,
    seal,
  ]
}

export function readEntry(row: EntryRow): AuditEntry {
  return {
    sequence: readSequence(row[0]),
    id: row[1],
    at: row[2],
    actor: row[3],
    type: row[4] as AuditedType,
    partner: row[5] ?? undefined,
    keyId: row[6] ?? undefined,
    subject: row[7] ?? undefined,
    before: row[8] ?? undefined,
    after: row[9] ?? undefined,
    seal: row[10],
  }
}

/** The position that the sequence in front of a trail's tail stands for. */
export function readTail(row: readonly [sequence: number] | undefined): number {
  return row === undefined ? -Infinity : readSequence(row[0])
}

/** Not the nearest number that there is: many rows would have the same, and a reader would not get past them. */
function readSequence(sequence: number): number {
  return Number.isSafeInteger(sequence) ? sequence : sequence * Infinity
}
