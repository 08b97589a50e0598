import type { Command } from 'commander'
import { currentUser } from './input/actor.ts'

/** What every command is told besides its own arguments. */
export interface Invocation {
  /** One JSON document on standard output instead of words for people. */
  readonly json: boolean
  /** As given; it may hold a password and is never shown. */
  readonly storeUrl: string
  /** Who the audit trail names for what the command changes. */
  readonly actor: string
}

/** The settings that stand before or after any command. */
export function invocationOf(command: Command): Invocation {
  const options = command.optsWithGlobals()
  return { json: options.json === true, storeUrl: options.store, actor: options.actor ?? currentUser() }
}
