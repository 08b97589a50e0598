/** What the server says when something goes wrong, in words that hold no data. */
import { StoreError } from '../../store-error.ts'
import { SqlError } from './database.ts'

/** What the driver makes of an ErrorResponse. Its other fields quote rows, statements and parameters. */
interface ServerError {
  readonly code: string
  readonly message: string
  /** In English whatever the server speaks: ERROR, FATAL or PANIC. */
  readonly severity?: string
  readonly severity_local?: string
  readonly constraint_name?: string
  readonly table_name?: string
}

/** A connection that is no more. Nobody knows whether what was under way on it was done. */
export class Lost extends Error {
  override readonly name = 'Lost'
  /** SQLSTATE, when the server said why. */
  readonly code: string | undefined

  constructor(reason: string, code?: string) {
    super(reason)
    this.code = code
  }
}

/** An integer that no number holds. */
export class OutOfRange extends Error {
  override readonly name = 'OutOfRange'
}

/**
 * Classes whose primary messages name objects, settings and users, and never what a row or a parameter held:
 * connections, features, authorization, states of transactions, names and syntax, resources, the operator's doing.
 */
const tellingClasses: ReadonlySet<string> = new Set([
  '08',
  '0A',
  '25',
  '28',
  '3D',
  '3F',
  '40',
  '42',
  '53',
  '54',
  '55',
  '57',
])

/** Classes that are about the server or the way to it, and not about the statement: any other would have failed, too. */
const troubleClasses: ReadonlySet<string> = new Set(['08', '28', '3D', '53', '57', '58'])

/** Whether the driver was told this by the server. */
export function isFromServer(error: unknown): error is ServerError {
  return error instanceof Error && error.name === 'PostgresError' && 'code' in error &&
    typeof error.code === 'string'
}

/** Whether the server ends the connection with this. */
export function isFatal({ severity, severity_local }: ServerError): boolean {
  return ['FATAL', 'PANIC'].includes(severity ?? severity_local ?? '')
}

export function readServerError(error: ServerError): SqlError {
  const { code, message, constraint_name: constraint, table_name: table } = error
  const about = [constraint && `constraint ${constraint}`, table && `table ${table}`].filter(Boolean)
  const said = tellingClasses.has(code.slice(0, 2)) ? `: ${message}` : ''
  return new SqlError(
    code,
    `the server answered ${code}${about.length === 0 ? '' : ` (${about.join(', ')})`}${said}`,
    constraint,
  )
}

/** Whether the server asks for the same again: serialization_failure, deadlock_detected. */
export function isToBeRepeated(error: unknown): boolean {
  return error instanceof SqlError && (error.code === '40001' || error.code === '40P01')
}

/** Whether a server that took writes takes none any more (read_only_sql_transaction): another is the primary now. */
export function isDemoted(error: unknown): boolean {
  return error instanceof SqlError && error.code === '25006'
}

/**
 * Whether nobody knows what became of a statement that commits: the connection is lost, or the server itself does not
 * know (transaction_resolution_unknown, statement_completion_unknown).
 */
export function isUnresolved(error: unknown): boolean {
  return error instanceof Lost || error instanceof SqlError && ['08007', '40003'].includes(error.code)
}

/** Whether a server that answers like this will answer so again until somebody changes something. */
export function isFinal(error: unknown): boolean {
  if (!(error instanceof Lost) && !(error instanceof SqlError)) return false
  return /^(?:0A|28|3D|42)/.test(error.code ?? '') || isAboutStartup(error)
}

/** Whether the server understood and said no, and is in no trouble itself. */
export function isRefusal(error: unknown): boolean {
  return error instanceof SqlError && !troubleClasses.has(error.code.slice(0, 2)) && !isDemoted(error)
}

/** Whether somebody on the way, a pooler, passes on no settings. Its code stands for anything that went wrong there. */
export function isAboutStartup({ message }: Error): boolean {
  return message.includes('startup parameter')
}

/**
 * What the rooms of the store get to see of an error. What is about the server or the way to it is a `StoreError`
 * `unreachable`.
 */
export function explain(place: string, error: unknown): unknown {
  if (error instanceof Lost) return unreachable(place, error.message)
  if (error instanceof OutOfRange) {
    return new StoreError('unreachable', `The store ${place} cannot be read: ${error.message}.`)
  }
  if (!(error instanceof SqlError) || isRefusal(error)) return error
  return unreachable(place, error.message)
}

export function unreachable(place: string, reason: string, cause?: unknown): StoreError {
  return new StoreError(
    'unreachable',
    `The store ${place} cannot be reached: ${reason}.`,
    cause === undefined ? undefined : { cause },
  )
}

/** What a socket's error says: its code, since of several attempts at once there is no message. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  return error.message === '' ? code ?? error.name : error.message
}
