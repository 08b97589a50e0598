import type { Remedy } from '../lib/remedy.ts'

/** Why a store cannot be used. Codes are stable. */
export type StoreErrorCode =
  /** A file is missing or cannot be used, a database does not respond, or another program keeps it locked. */
  | 'unreachable'
  /** The store has more to do than it can do in time. */
  | 'overloaded'
  /** The file or database has no store, and the call does not create one. */
  | 'missing'
  /** A newer version of this package has migrated the store. */
  | 'newer_schema'
  /** The store does not allow the operation. */
  | 'refused'
  /** The store lacks the settings that its creation writes. */
  | 'damaged'
  /** Other transactions hold the locks that a signup needs. */
  | 'delayed'
  /** The files of the store may still have what was deleted. */
  | 'not_erased'

/** A store cannot be used. The message says what could not be done and why. It never contains a secret. */
export class StoreError extends Error {
  /** Always `StoreError`. */
  override readonly name = 'StoreError'
  /** Why the store cannot be used. */
  readonly code: StoreErrorCode
  /** A command that helps, if there is one. */
  readonly remedy: Remedy | undefined

  /** The message is one or more sentences without a secret in them. */
  constructor(
    code: StoreErrorCode,
    message: string,
    options: ErrorOptions & { readonly remedy?: Remedy } = {},
  ) {
    super(message, options)
    this.code = code
    this.remedy = options.remedy
  }
}
