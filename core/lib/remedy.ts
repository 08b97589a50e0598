/** A command of `partner-api` that helps after an error, such as `keys rotate`. */
export interface Remedy {
  /** What the command is for, as in `To replace it`. */
  readonly purpose: string
  /** The words after `partner-api` that name the command. */
  readonly command: string
  /** Names in capitals stand for what is to be chosen. */
  readonly args: readonly string[]
}
