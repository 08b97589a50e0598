import type { StoreErrorCode } from '../adapters/stores/store-error.ts'

/** 0 done or valid; 1 refused or invalid; 2 usage; 3 the deployment or store can't be reached. */
export type ExitCode = 0 | 1 | 2 | 3

/** Why a command could not be done, in words for the person who gave it. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly exitCode: ExitCode
  /** Grep-able, for scripts: `error.code` under `--json`. */
  readonly code: string
  /** Further members of `error` under `--json`. */
  readonly members: Readonly<Record<string, unknown>>
  /** Lines that belong to the sentence, for people; `members` has them for scripts. */
  readonly lines: readonly string[]
  /** What was done all the same: `data` beside `error` under `--json`. */
  readonly data: unknown

  constructor(
    exitCode: ExitCode,
    code: string,
    detail: string,
    more: { members?: Readonly<Record<string, unknown>>; lines?: readonly string[]; data?: unknown } = {},
  ) {
    super(detail)
    this.exitCode = exitCode
    this.code = code
    this.members = more.members ?? {}
    this.lines = more.lines ?? []
    this.data = more.data
  }
}

/** A command that was written wrongly. */
export function usageError(detail: string): CliError {
  return new CliError(2, 'usage', detail)
}

const storeErrorCodes: Readonly<Record<StoreErrorCode, readonly [ExitCode, string]>> = {
  unreachable: [3, 'store_unavailable'],
  missing: [3, 'store_missing'],
  newer_schema: [3, 'newer_schema'],
  refused: [1, 'refused'],
}

/** What a thrown value means for the person who gave the command. */
export async function toCliError(error: unknown): Promise<CliError> {
  if (error instanceof CliError) return error
  // Imported here because only a command that failed needs to tell them apart.
  const [{ AdminError }, { StoreError }] = await Promise.all([
    import('../core/admin/validate.ts'),
    import('../adapters/stores/store-error.ts'),
  ])
  if (error instanceof AdminError) return new CliError(1, error.code, error.message)
  if (error instanceof StoreError) {
    const [exitCode, code] = storeErrorCodes[error.code]
    return new CliError(exitCode, code, error.message)
  }
  // What a database says to a statement that is right is about whose it is, and what its operator allows.
  if (error instanceof Error && error.name === 'SqlError') {
    return new CliError(3, 'store_unavailable', `The store cannot be used: ${error.message}.`)
  }
  const message = error instanceof Error ? error.message : String(error)
  const [sentence = ''] = message.split('\n')
  return new CliError(
    1,
    'internal',
    `This should not have happened: ${sentence} (PARTNER_API_DEBUG=1 shows where.)`,
  )
}
