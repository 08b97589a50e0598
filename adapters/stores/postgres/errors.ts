/** Errors of a server or of the connection to it, whose messages contain no data. */
import { StoreError } from '../../../core/ports/store-error.ts'

class DatabaseError extends Error {
  /** SQLSTATE, five characters: `23505` for a unique violation. */
  readonly code: string | undefined

  constructor(message: string, code?: string) {
    super(message)
    this.code = code
  }
}

/** The server rejected a statement. */
export class SqlError extends DatabaseError {
  override readonly name = 'SqlError'
  declare readonly code: string
}

/** The connection is gone: whether the server did what was in flight is unknown. */
export class ConnectionLostError extends DatabaseError {
  override readonly name = 'ConnectionLostError'
}

/** The connection was lost after a commit was sent and before it was answered. */
export class CommitUnknownError extends DatabaseError {
  override readonly name = 'CommitUnknownError'
}

/** Classes of SQLSTATE whose messages name objects, settings and users, but hold no values. */
const safeMessageCodes = /^(?:08|0A|25|28|3D|3F|40|42|53|54|55|57)/
/** Classes of SQLSTATE about the server or the connection: any other statement would have failed, too. */
const serverTroubleCodes = /^(?:08|28|3D|53|57|58)/
/** Classes of SQLSTATE that do not go away by themselves: features, authorization, no such database, access. */
const permanentCodes = /^(?:0A|28|3D|42)/

/** serialization_failure, deadlock_detected */
const retryableCodes = /^(?:40001|40P01)$/
/** transaction_resolution_unknown, statement_completion_unknown */
const commitUnknownCodes = /^(?:08007|40003)$/
/** read_only_sql_transaction: another server is the primary now. */
const readOnlyCode = '25006'

export const isRetryable = (error: unknown): boolean =>
  error instanceof SqlError && retryableCodes.test(error.code)

export const isReadOnly = (error: unknown): error is SqlError =>
  error instanceof SqlError && error.code === readOnlyCode

/** query_canceled: the statement took longer than its limit. */
export const isCanceled = (error: unknown): error is SqlError =>
  error instanceof SqlError && error.code === '57014'

/** Whether the server rejected the statement itself, and is in no trouble. */
export const isStatementError = (error: unknown): boolean =>
  error instanceof SqlError && !serverTroubleCodes.test(error.code)

/** Whether a statement that commits, and was sent, may have been done. */
export const mayBeCommitted = (error: unknown): error is DatabaseError =>
  error instanceof ConnectionLostError || error instanceof SqlError && commitUnknownCodes.test(error.code)

/**
 * The attempt that may succeed after an error: to connect again, to repeat the work, or to do it on another connection.
 */
type NextAttempt = 'connect' | 'repeat' | 'replace' | 'fail'

/**
 * Decides what helps after an error.
 *
 * @returns `cause`: the error to throw if that does not help either.
 */
export function classify(error: unknown, { stage, commits, readOnly }: {
  readonly stage: 'waiting' | 'connecting' | 'working'
  /** Whether the work is a statement that commits. */
  readonly commits: boolean
  /** Whether the work is a transaction that may not write, or one that may. */
  readonly readOnly: boolean | undefined
}): { readonly next: NextAttempt; readonly cause: unknown } {
  if (stage === 'waiting') return { next: 'fail', cause: error }
  if (stage === 'connecting') return { next: isPermanent(error) ? 'fail' : 'connect', cause: error }
  if (commits && mayBeCommitted(error)) return { next: 'fail', cause: new CommitUnknownError(error.message) }
  if (isRetryable(error)) return { next: 'repeat', cause: error }
  // The server has stopped taking writes: another one is the primary now.
  const isDemoted = !readOnly && isReadOnly(error)
  const cause = isDemoted ? new ConnectionLostError(error.message, error.code) : error
  return { next: cause instanceof ConnectionLostError ? 'replace' : 'fail', cause }
}

/** Whether connecting again would fail in the same way. */
export const isPermanent = (error: unknown): boolean =>
  error instanceof ConnectionLostError && (permanentCodes.test(error.code ?? '') || isStartupError(error))

/** Whether a pooler does not pass on a setting. It has no SQLSTATE of its own. */
export const isStartupError = ({ message }: Error): boolean => message.includes('startup parameter')

/** Whether a `StoreError` leaves open if a change was committed. */
export const isCommitUnknown = (error: unknown): boolean =>
  error instanceof StoreError && error.cause instanceof CommitUnknownError

/** Translates an error of the driver, other fields of which quote rows, statements and parameters. */
export function fromDriver(error: unknown): Error {
  if (error instanceof RangeError) return new RangeError(error.message)
  const { name, message, code, severity, constraint_name: constraint, table_name: table } = error as
    & Error
    & Record<string, string | undefined>
  // An attempt on several addresses fails without a message.
  if (name !== 'PostgresError' || !code) return new ConnectionLostError(message || code || name)
  const names = [constraint && `constraint ${constraint}`, table && `table ${table}`].filter(Boolean)
  const about = names.length > 0 ? ` (${names.join(', ')})` : ''
  const said = `the server answered ${code}${about}${safeMessageCodes.test(code) ? `: ${message}` : ''}`
  // The server closes the connection.
  if (severity === 'FATAL' || severity === 'PANIC') return new ConnectionLostError(said, code)
  return new SqlError(said, code)
}

/**
 * Translates an error for users of a database: all but what the server answers to a statement itself is `unreachable`.
 */
export function toStoreError(location: string, error: unknown): unknown {
  const isRange = error instanceof RangeError
  if (isStatementError(error) || !(isRange || error instanceof DatabaseError)) return error
  const options = error instanceof CommitUnknownError || error instanceof RangeError
    ? { cause: error }
    : undefined
  return new StoreError(
    'unreachable',
    `The store ${location} cannot be ${isRange ? 'read' : 'reached'}: ${error.message}.`,
    options,
  )
}

export function overloadedError(location: string, reason: string): StoreError {
  return new StoreError('overloaded', `The store ${location} is overloaded: ${reason}.`)
}
