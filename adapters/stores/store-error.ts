/**
 * Why a store cannot be used: it cannot be reached (no such file, no answer, locked for too long), there is none where
 * one is expected, its schema is newer than this program, or it refuses what was asked of it.
 */
export type StoreErrorCode = 'unreachable' | 'missing' | 'newer_schema' | 'refused'

/** An error whose message says to an operator what could not be done and why. It never holds a secret. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: StoreErrorCode

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** What a copy into a store means for who has it open, or opens it. */

/** Why a store that is being copied into cannot be used. */
export function unfinishedCopyError(place: string): StoreError {
  return new StoreError(
    'refused',
    `The store ${place} cannot be used: a copy into it was begun and has not been finished. The same store copy ` +
      'command goes on with it.',
  )
}

/** Why a program that had a store open while it was copied into cannot go on: all that it knows was another store's. */
export function replacedByCopyError(place: string): StoreError {
  return new StoreError(
    'refused',
    `Another store was copied to ${place} while it was open. Start again to go on with what is there now.`,
  )
}

/** Why a row cannot be copied. */

/** A row that was to be written refers to one that is not there. */
export function danglingReferenceError(place: string, cause: unknown): StoreError {
  return new StoreError(
    'refused',
    `What was to be written to ${place} refers to something that was not in the source a moment before: the source is ` +
      'being changed. The same command, given again, brings that, too.',
    { cause },
  )
}
