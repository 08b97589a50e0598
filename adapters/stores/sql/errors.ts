/** Errors of stores of both databases. */
import { StoreError } from '../../../core/ports/store-error.ts'

export function unfinishedCopyError(location: string): StoreError {
  return new StoreError(
    'refused',
    `The store ${location} cannot be used: a copy into it was not finished. Drop it, the file or the schema partner_api, and ` +
      'start store copy again.',
  )
}

/**
 * The error of a program that had the store open during the copy: everything it has cached belongs to another store.
 */
export function replacedByCopyError(location: string): StoreError {
  return new StoreError(
    'refused',
    `Another store was copied to ${location} while it was open. Start again to use the new store.`,
  )
}

/** The error of a store that has its tables, but not the settings that its creation writes. */
export function missingSettingsError(location: string): StoreError {
  return new StoreError('damaged', `The store ${location} cannot be read: its settings are missing.`)
}

export function danglingReferenceError(location: string, cause: unknown): StoreError {
  return new StoreError(
    'refused',
    `The copy to ${location} cannot be finished: a row of the source refers to one that the source does not have.`,
    { cause },
  )
}
