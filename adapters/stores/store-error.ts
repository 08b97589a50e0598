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
