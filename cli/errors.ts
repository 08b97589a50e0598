import { AdminError } from '../core/admin/error.ts'
import type { Remedy } from '../core/lib/remedy.ts'
import { StoreError, type StoreErrorCode } from '../core/ports/store-error.ts'

/** 0 done or valid; 1 refused or invalid; 2 usage; 3 the deployment or store can't be reached. */
export type ExitCode = 0 | 1 | 2 | 3

/** What the error says when the result of a change cannot be written, such as the only copy of a secret. */
export interface Loss {
  /** A sentence about the change. It names a secret by its id. */
  readonly detail: string
  /** The command that replaces what is lost. */
  readonly remedy?: Remedy
}

/** What an error has besides its code and its message. */
export interface ErrorDetails {
  /** Further members of `error` under `--json`. */
  readonly members?: Readonly<Record<string, unknown>>
  /** Lines printed below the message, for people; `members` has them for scripts. */
  readonly lines?: readonly string[]
  /** What the command did before it failed: `data` beside `error` under `--json`. */
  readonly data?: unknown
  /** What the error says when `data` cannot be written. */
  readonly lost?: Loss | undefined
  /** A command that helps; the output adds it to the message. */
  readonly remedy?: Remedy | undefined
}

/** Why a command failed. The message is for people. */
export class CliError extends Error implements ErrorDetails {
  override readonly name = 'CliError'
  readonly exitCode: ExitCode
  /** The code for scripts, which `--json` prints as `error.code`. */
  readonly code: string
  readonly members: Readonly<Record<string, unknown>>
  readonly lines: readonly string[]
  readonly data: unknown
  readonly lost: Loss | undefined
  readonly remedy: Remedy | undefined

  constructor(
    exitCode: ExitCode,
    code: string,
    detail: string,
    details: ErrorDetails = {},
  ) {
    super(detail)
    this.exitCode = exitCode
    this.code = code
    this.members = details.members ?? {}
    this.lines = details.lines ?? []
    this.data = details.data
    this.lost = details.lost
    this.remedy = details.remedy
  }
}

export function usageError(detail: string): CliError {
  return new CliError(2, 'usage', detail)
}

const storeErrorCodes: Readonly<Record<StoreErrorCode, readonly [ExitCode, string]>> = {
  unreachable: [3, 'store_unavailable'],
  overloaded: [3, 'overloaded'],
  missing: [3, 'store_missing'],
  newer_schema: [3, 'newer_schema'],
  refused: [1, 'refused'],
  damaged: [3, 'store_unavailable'],
  delayed: [3, 'store_unavailable'],
  not_erased: [3, 'store_unavailable'],
}

/** The error to print, with its exit code. An unexpected error becomes `internal`, without its stack. */
export function toCliError(error: unknown): CliError {
  if (error instanceof CliError) return error
  if (error instanceof AdminError) {
    const { code, message, remedy } = error
    // A misspelled name, as that of an option.
    if (code === 'unknown_module' || code === 'unknown_scope') return usageError(message)
    return new CliError(1, code, message, { remedy })
  }
  const { name, message, cause } = error instanceof Error ? error : { name: '', message: String(error) }
  // By name: only Deno has the class.
  const denied = [error, cause].find((each) => (each as Error | undefined)?.name === 'NotCapable')
  if (denied) return new CliError(1, 'not_permitted', `Deno refused it: ${(denied as Error).message}.`)
  if (error instanceof StoreError) {
    const [exitCode, code] = storeErrorCodes[error.code]
    return new CliError(exitCode, code, message, { remedy: error.remedy })
  }
  // By name: importing the class would load code for PostgreSQL with every command. The statements are correct, so a
  // database that rejects one lacks permissions or resources.
  if (name === 'SqlError') {
    return new CliError(3, 'store_unavailable', `The store cannot be used: ${message}.`)
  }
  const [sentence = ''] = message.split('\n')
  return new CliError(1, 'internal', `Unexpected error: ${sentence} (PARTNER_API_DEBUG=1 prints the stack.)`)
}
