import type { Remedy } from '../../../core/admin/error.ts'

/**
 * Why a store cannot be used: it cannot be reached (missing file, no answer, locked for too long), there is no store at
 * a place that must have one, a newer program has migrated it, it refuses an operation, or it is overloaded; it lacks
 * the settings that its creation writes, other transactions delay a signup, or its files still have deleted text.
 */
export type StoreErrorCode =
  | 'unreachable'
  | 'overloaded'
  | 'missing'
  | 'newer_schema'
  | 'refused'
  | 'damaged'
  | 'delayed'
  | 'not_erased'

/** An error whose message tells an operator what could not be done and why. It never contains a secret. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: StoreErrorCode
  /** A command that helps, if there is one. */
  readonly remedy: Remedy | undefined

  constructor(code: StoreErrorCode, message: string, options: ErrorOptions & { remedy?: Remedy } = {}) {
    super(message, options)
    this.code = code
    this.remedy = options.remedy
  }
}

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
