/** Why a row cannot be copied. */
import type { AuditEntry } from '../../../core/audit/entry.ts'
import { StoreError } from '../store-error.ts'
import type { WritableTable } from './archive.ts'

/** A row that was to be written refers to one that is not there. */
export function danglingRow(place: string, cause: unknown): StoreError {
  return new StoreError(
    'refused',
    `What was to be written to ${place} refers to something that was not in the source a moment before: the source is ` +
      'being changed. The same command, given again, brings that, too.',
    { cause },
  )
}

/** A trail that is read only as far as a store can have written it: another kind of store could not hold the rest. */
export function countableEntries(place: string, table: WritableTable<AuditEntry>): WritableTable<AuditEntry> {
  return {
    async read(after, limit) {
      const entries = await table.read(after, limit)
      if (entries.every(isCountable)) return entries
      throw uncountable(place)
    },
    write: table.write,
  }
}

function isCountable({ sequence, at }: AuditEntry): boolean {
  return Number.isSafeInteger(sequence) && Number.isSafeInteger(at)
}

function uncountable(place: string): StoreError {
  return new StoreError(
    'refused',
    `The audit trail of ${place} holds a row that no program of ours has written, and that cannot be copied: audit ` +
      'verify names the first.',
  )
}
