import type { Command } from 'commander'

/** What every command is told besides its own arguments. */
export interface Invocation {
  /** One JSON document on standard output instead of words for people. */
  readonly json: boolean
  /** As given; it may hold a password and is never shown. */
  readonly storeUrl: string
}

/** The settings that stand before or after any command. */
export function invocationOf(command: Command): Invocation {
  const options = command.optsWithGlobals()
  return { json: options.json === true, storeUrl: options.store }
}
