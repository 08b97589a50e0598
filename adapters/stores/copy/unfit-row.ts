/** Why a row cannot be copied. */
import type { AuditEntry } from '../../../core/audit/entry.ts'
import { StoreError } from '../store-error.ts'

/** A row that was to be written refers to one that is not there. */
export function danglingRow(place: string, cause: unknown): StoreError {
  return new StoreError(
    'refused',
    `What was to be written to ${place} refers to something that was not in the source a moment before: the source is ` +
      'being changed. The same command, given again, brings that, too.',
    { cause },
  )
}

/**
 * Entries of a trail, once all are known to be such as a store can have written.
 *
 * @throws {StoreError} `refused` when somebody has put others there: no other kind of store could hold them.
 */
export function checkEntries(place: string, entries: readonly AuditEntry[]): readonly AuditEntry[] {
  if (entries.every(({ sequence, at }) => Number.isSafeInteger(sequence) && Number.isSafeInteger(at))) {
    return entries
  }
  throw new StoreError(
    'refused',
    `The audit trail of ${place} holds a row that no program of ours has written, and that cannot be copied: audit ` +
      'verify names the first.',
  )
}
