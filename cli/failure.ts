/** 0 done or valid; 1 refused or invalid; 2 usage; 3 the deployment or store can't be reached. */
export type ExitCode = 0 | 1 | 2 | 3

/** Why a command could not be done, in words for the person who gave it. */
export class Failure extends Error {
  override readonly name = 'Failure'
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
export function usageFailure(detail: string): Failure {
  return new Failure(2, 'usage', detail)
}
