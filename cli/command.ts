/** What the commands have in common: global options, actions, and changes that servers apply. */
import process from 'node:process'
import type { Command } from 'commander'
import type { MaybePromise } from '../core/lib/promise.ts'
import type { Store } from '../core/ports/store.ts'
import { awaitReceipt, type Receipt, type ReplicaReceipt } from '../core/replicas/receipt.ts'
import { CliError, type ExitCode, toCliError, usageError } from './errors.ts'
import { printDocument, printNote, printResult, setStoreOption, withProgress } from './output/print.ts'
import { printable } from './output/text.ts'
import { type StoreOptions, withStore } from './store.ts'
import { currentUser, holdsPassword, parseStoreUrl } from './store-url.ts'

/** The global options of a command. */
export interface Invocation {
  /** Whether to print one JSON document instead of text for people. */
  readonly json: boolean
  /** As given; it may contain a password and is never printed. */
  readonly storeUrl: string
  /** The name in the audit log. */
  readonly actor: string
}

/** Makes an action for Commander that passes on the invocation and sets the returned exit code. */
export function action<Given extends readonly unknown[]>(
  run: (invocation: Invocation, ...given: Given) => MaybePromise<ExitCode | void>,
): (...args: [...Given, Command]) => Promise<void> {
  return async (...args) => {
    const given = args.slice(0, -1) as unknown as Given
    const exitCode = await run(readInvocation(args.at(-1) as Command), ...given)
    if (exitCode) process.exitCode = exitCode
  }
}

function readInvocation(command: Command): Invocation {
  const options = command.optsWithGlobals()
  const json = options.json === true
  const isArgument = command.getOptionValueSourceWithGlobals('store') === 'cli'
  if (isArgument && !json) warnAboutPasswords([options.store])
  if (isArgument) setStoreOption(holdsPassword(options.store) ? 'URL' : options.store)
  return { json, storeUrl: options.store, actor: options.actor ?? currentUser() }
}

/** Prints one warning if any of the URLs, all of them arguments, contains a password. */
export function warnAboutPasswords(storeUrls: readonly string[]): void {
  if (!storeUrls.some(holdsPassword)) return
  printNote(
    'warning: A password is visible to other users of this machine in the list of processes. Pass it in PGPASSWORD, or ' +
      'the whole --store URL in PARTNER_API_STORE.',
  )
}

/** The options of a command that changes what servers serve. */
export interface WaitOptions {
  readonly wait?: boolean
}

/** What a command did. */
export interface CommandResult {
  /** For `--json`. */
  readonly data: unknown
  /** For people, on standard output. */
  readonly text: string
  /** Further sentences for people. Called after the rest is printed: a new key must not wait for a failing query. */
  readonly notes?: () => MaybePromise<readonly string[]>
}

/** Adds `--wait`, and an action that changes the store and prints the result. */
export function setChangeAction<Given extends readonly [...unknown[], WaitOptions]>(
  command: Command,
  change: (store: Store, invocation: Invocation, ...given: Given) => Promise<CommandResult>,
  storeOptions: StoreOptions = {},
): void {
  addWaitOption(command).action(
    action((invocation, ...given: Given) =>
      changeStore(
        invocation,
        storeOptions,
        given.at(-1) as WaitOptions,
        (store) => change(store, invocation, ...given),
      )
    ),
  )
}

export function addWaitOption(command: Command): Command {
  return command.option('--wait', 'Wait until every server has applied the change (postgres:// only)')
}

/**
 * Changes the store and prints the result. With `--wait`, also waits until every server has applied the change.
 *
 * @throws {CliError} exit code 2 for `--wait` on a store without a list of servers, before any change.
 */
export async function changeStore(
  invocation: Invocation,
  storeOptions: StoreOptions,
  { wait = false }: WaitOptions,
  change: (store: Store) => Promise<CommandResult>,
): Promise<void> {
  if (wait && parseStoreUrl(invocation.storeUrl).kind !== 'postgres') {
    throw usageError(
      'Only a PostgreSQL store has a list of its servers, which --wait needs (postgres://…). Servers on any other ' +
        'store apply the change within their max staleness: 1 s by default, 10 s at most.',
    )
  }
  await withStore(invocation, storeOptions, async (store) => {
    const { data, text, notes } = await change(store)
    // Under --json there is one document, which has to include the receipt.
    if (!wait || !invocation.json) await printResult(invocation, data, text)
    for (const note of await notes?.() ?? []) printNote(note)
    if (!wait) return
    const receipt = await awaitServers(store, data)
    if (invocation.json) await printDocument({ data, receipt: receiptJson(receipt) })
    else for (const line of receiptLines(receipt)) printNote(line)
  })
}

function awaitServers(store: Store, data: unknown): Promise<Receipt> {
  return withProgress(async (report) => {
    report('Waiting until every server has applied the change …')
    try {
      // Postgres stores have a list of servers, so there is a receipt.
      return (await awaitReceipt(store))!
    } catch (error) {
      const { exitCode, code, message } = toCliError(error)
      const detail = `The change is made, but whether every server has applied it is unknown: ${message}`
      throw new CliError(exitCode, code, detail, { data })
    }
  })
}

function receiptJson({ ms, replicas }: Receipt): Record<string, unknown> {
  const servers = replicas.map(({ name, applied, ms, skewMs }) => ({
    name,
    applied,
    ms,
    ...(skewMs !== 0 && { clock_skew_ms: skewMs }),
  }))
  return { ms, replicas: servers }
}

function receiptLines({ ms, replicas }: Receipt): string[] {
  const servers = replicas.length === 0
    ? ['No running server has cached older data.']
    : [...replicas.map(replicaLine), ...replicas.filter(({ skewMs }) => skewMs !== 0).map(skewLine)]
  return [...servers, `In effect everywhere after ${ms} ms.`]
}

function replicaLine({ name, applied, ms }: ReplicaReceipt): string {
  return applied
    ? `${printable(name)} applied it after ${ms} ms`
    : `${printable(name)} did not respond; its lease ended after ${ms} ms`
}

function skewLine({ name, skewMs }: ReplicaReceipt): string {
  return `warning: The clock of ${printable(name)} is ${Math.abs(skewMs)} ms ${
    skewMs > 0 ? 'ahead of' : 'behind'
  } the store's clock, which determines when keys expire.`
}
