import type { Command } from 'commander'
import { userInfo } from 'node:os'
import process from 'node:process'
import { isActor } from '../core/audit/actor.ts'
import { holdsPassword } from './input/store-address.ts'
import { printNote, repeatStore } from './output/print.ts'

/** What every command is told besides its own arguments. */
export interface Invocation {
  /** One JSON document on standard output instead of words for people. */
  readonly json: boolean
  /** As given; it may hold a password and is never shown. */
  readonly storeUrl: string
  /** Who the audit trail names for what the command changes. */
  readonly actor: string
}

/** What commander calls for a command: hands on the invocation, and what commander has parsed. */
export function action<Given extends readonly unknown[]>(
  run: (invocation: Invocation, ...given: Given) => void | Promise<void>,
): (...args: [...Given, Command]) => void | Promise<void> {
  return (...args) => run(invocationOf(args.at(-1) as Command), ...args.slice(0, -1) as unknown as Given)
}

/** The settings that stand before or after any command. */
function invocationOf(command: Command): Invocation {
  const options = command.optsWithGlobals()
  const json = options.json === true
  const isArgument = command.getOptionValueSourceWithGlobals('store') === 'cli'
  if (isArgument && !json) warnOfPasswords([options.store])
  if (isArgument) repeatStore(holdsPassword(options.store) ? 'URL' : options.store)
  return { json, storeUrl: options.store, actor: options.actor ?? currentUser() }
}

/** Says once that arguments are no place for the password of a store, if there is one among these. */
export function warnOfPasswords(storeUrls: readonly string[]): void {
  if (!storeUrls.some(holdsPassword)) return
  printNote(
    'warning: others on this machine can read the arguments of a program, and a password is among these. Give the ' +
      'password in PGPASSWORD, or the whole URL of --store in PARTNER_API_STORE.',
  )
}

/** Who runs this command: the operating system's user, or who the environment says it is where there is none. */
export function currentUser(): string {
  return [systemUser(), process.env.USER].find((name) => name !== undefined && isActor(name)) ?? 'unknown'
}

/** A container may run under a number that no user has. */
function systemUser(): string | undefined {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}
