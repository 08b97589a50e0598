import type { Command } from 'commander'
import type { MaybePromise } from '../core/lib/promise.ts'
import type { Store } from '../core/ports/store.ts'
import { awaitReceipt, type Receipt, type ReplicaReceipt } from '../core/replicas/receipt.ts'
import { CliError, toCliError, usageError } from './errors.ts'
import { currentUser, holdsPassword, type Invocation, parseStoreUrl } from './invocation.ts'
import { printDocument, printNote, printResult, setStoreOption, withProgress } from './output/print.ts'
import { printable } from './output/text.ts'
import { type StoreOptions, withStore } from './store.ts'

/** The options of a command that changes what servers serve. */
export interface WaitOptions {
  readonly wait?: boolean
}

/** Adds the options of {@linkcode WaitOptions}. */
export function addWaitOption(command: Command): Command {
  return command.option(
    '--wait',
    'Return when the change binds every server, and name them (postgres:// only)',
  )
}

/** What a command did. */
export interface CommandResult {
  /** For `--json`. */
  readonly data: unknown
  /** For people, on standard output. */
  readonly text: string
  /** Further sentences for people, asked for when the rest is printed: a new key is out by then, whatever they need. */
  readonly notes?: () => MaybePromise<readonly string[]>
}

/**
 * Runs a command that changes what servers serve, and says what it did; with `--wait`, also when each of them applied it.
 *
 * @throws {CliError} exit code 2 for `--wait` on a store that knows no servers, before anything is changed.
 */
export async function changeStore(
  invocation: Invocation,
  storeOptions: StoreOptions,
  { wait = false }: WaitOptions,
  change: (store: Store) => Promise<CommandResult>,
): Promise<void> {
  if (wait && parseStoreUrl(invocation.storeUrl).kind !== 'postgres') {
    throw usageError(
      'Only a PostgreSQL store knows the servers that run on it, and --wait needs one (postgres://…). Servers of any ' +
        'other store follow within their max staleness: 1 s by default, and 10 s at most.',
    )
  }
  await withStore(invocation, storeOptions, async (store) => {
    const { data, text, notes } = await change(store)
    // Under --json there is one document, and what is waited for belongs into it.
    if (!wait || !invocation.json) await printResult(invocation, data, text)
    for (const note of await notes?.() ?? []) printNote(note)
    if (!wait) return
    const receipt = await receiptFor(store, data)
    if (invocation.json) await printDocument({ data, receipt: receiptJson(receipt) })
    else for (const line of receiptLines(receipt)) printNote(line)
  })
}

function receiptFor(store: Store, data: unknown): Promise<Receipt> {
  return withProgress(async (report) => {
    report('Waiting until every server has applied it …')
    try {
      // Stores of this kind know.
      return (await awaitReceipt(store))!
    } catch (error) {
      const { exitCode, code, message } = await toCliError(error)
      const detail = `The change is made, but nobody can say whether every server has applied it: ${message}`
      throw new CliError(exitCode, code, detail, { data })
    }
  })
}

/** Receipt, as `--json` shows it. */
function receiptJson({ ms, replicas }: Receipt): Record<string, unknown> {
  const servers = replicas.map(({ name, applied, ms, skewMs }) => ({
    name,
    applied,
    ms,
    ...(skewMs !== 0 && { clock_skew_ms: skewMs }),
  }))
  return { ms, replicas: servers }
}

/** A receipt for people: a sentence for each replica, and one for all. */
function receiptLines({ ms, replicas }: Receipt): string[] {
  // A server that was asked for nothing yet is not listed.
  const lines = replicas.length === 0
    ? ['No server on this store uses anything older.']
    : [...replicas.map(replicaLine), ...replicas.filter(({ skewMs }) => skewMs !== 0).map(skewLine)]
  return [...lines, `Binds everywhere after ${ms} ms.`]
}

function skewLine({ name, skewMs }: ReplicaReceipt): string {
  return `warning: The clock of ${printable(name)} is ${Math.abs(skewMs)} ms ${
    skewMs > 0 ? 'ahead of' : 'behind'
  } that of the store, by which keys are judged.`
}

function replicaLine({ name, applied, ms }: ReplicaReceipt): string {
  return applied
    ? `${printable(name)} applied it after ${ms} ms`
    : `${printable(name)} has not answered; its lease ended after ${ms} ms`
}

/** What commander calls for a command: hands on the invocation, and what commander has parsed. */
export function action<Given extends readonly unknown[]>(
  run: (invocation: Invocation, ...given: Given) => void | Promise<void>,
): (...args: [...Given, Command]) => void | Promise<void> {
  return (...args) => run(invocationOf(args.at(-1) as Command), ...args.slice(0, -1) as unknown as Given)
}

/** The settings that stand before or after any command. */
export function invocationOf(command: Command): Invocation {
  const options = command.optsWithGlobals()
  const json = options.json === true
  const isArgument = command.getOptionValueSourceWithGlobals('store') === 'cli'
  if (isArgument && !json) warnAboutPasswords([options.store])
  if (isArgument) setStoreOption(holdsPassword(options.store) ? 'URL' : options.store)
  return { json, storeUrl: options.store, actor: options.actor ?? currentUser() }
}

/** Says once that arguments are no place for the password of a store, if there is one among these. */
export function warnAboutPasswords(storeUrls: readonly string[]): void {
  if (!storeUrls.some(holdsPassword)) return
  printNote(
    'warning: others on this machine can read the arguments of a program, and a password is among these. Give the ' +
      'password in PGPASSWORD, or the whole URL of --store in PARTNER_API_STORE.',
  )
}
