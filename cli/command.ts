/** What the commands have in common: global options, actions, and changes that servers apply. */
import process from 'node:process'
import { type Argument, Command, Option, type ParseOptionsResult } from 'commander'
import type { PreviewingOperator } from '../core/admin/apply.ts'
import type { MaybePromise } from '../core/lib/promise.ts'
import type { Store } from '../core/ports/store.ts'
import { awaitReceipt, type Receipt } from '../core/replicas.ts'
import { CliError, type ErrorDetails, type ExitCode, type Loss, toCliError, usageError } from './errors.ts'
import { endBySignal, interrupts } from './files.ts'
import { createArgument, createOption, integerBetween, suggestChoices } from './options.ts'
import type { CommandResult, Io, Output } from './output/print.ts'
import { joinList, printable } from './output/text.ts'
import { conflictsOf, setFromVariables, variableOf, type Variables } from './environment.ts'
import {
  isMissingStore,
  type StoreAccess,
  type StoreOptions,
  withEmptyStore,
  withStore,
} from './store/open.ts'
import { currentUser, holdsPassword, parseStoreUrl } from './store/url.ts'

/** One run of the program, which all of its commands share. */
export interface Run {
  readonly io: Io
  readonly output: Output
  exitCode: ExitCode
  readonly variables: Variables
  load(name: string): Promise<{ define(command: CliCommand): void }>
}

/** The global options of a command, and what it reads and writes. */
export interface Invocation extends StoreAccess {
  /** The operator in the audit log. In a dry run, its changes are only looked at. */
  readonly operator: PreviewingOperator
  readonly wait: boolean
}

/** An action gets the arguments and options of its command, and returns what is printed, or the exit code. */
export type Action<Given extends readonly unknown[]> = (
  invocation: Invocation,
  ...given: Given
) => MaybePromise<CommandResult | ExitCode | void>

/** An action on the store of a run, which is open until its result is printed. */
export type StoreAction<Given extends readonly unknown[], Result = CommandResult> = (
  store: Store,
  invocation: Invocation,
  ...given: Given
) => Promise<Result>

/** A command of Commander that belongs to a run. */
export class CliCommand extends Command {
  readonly run: Run
  #isLoaded = false
  readonly exampleLines: string[] = []

  constructor(name: string | undefined, run: Run) {
    super(name)
    this.run = run
  }

  override createCommand(name?: string): CliCommand {
    return new CliCommand(name, this.run)
  }

  override createArgument(name: string, description?: string): Argument {
    return createArgument(name, description)
  }

  override createOption(flags: string, description?: string): Option {
    return createOption(flags, description)
  }

  /** @param usage The name and the arguments, such as `show <key>`. */
  subcommand(usage: string, description: string): CliCommand {
    return this.command(usage).description(description)
  }

  async load(): Promise<this> {
    if (this.parent?.parent !== null || this.#isLoaded) return this
    this.#isLoaded = true
    const { define } = await this.run.load(this.name())
    define(this)
    if (this.commands.length > 0) this.helpCommand('help [command]', 'Print help for a command')
    return this
  }

  /** Finds and loads the command that words name, and returns the words that follow its name. */
  async find(
    words: readonly string[],
  ): Promise<{ readonly command: CliCommand; readonly rest: readonly string[] }> {
    const next = this.commands.find((command) => command.name() === words[0]) as CliCommand | undefined
    return next === undefined
      ? { command: this, rest: words }
      : await (await next.load()).find(words.slice(1))
  }

  override addOption(option: Option): this {
    this.run.variables.set(option, variableOf(pathOf(this), option))
    return super.addOption(suggestChoices(option).conflicts(conflictsOf(option)))
  }

  /** Parses arguments, and sets the options that are not among them from environment variables. */
  override parseOptions(argv: string[]): ParseOptionsResult {
    const parsed = super.parseOptions(argv)
    if (!parsed.unknown.some(isHelpFlag)) setFromVariables(this, this.run.variables, this.run.io.env)
    // An unknown option may be a misspelled required one: Commander would first report that one as missing.
    if (parsed.unknown.length > 0) {
      for (const option of this.options) option.makeOptionMandatory(false)
    }
    return parsed
  }

  /** Adds a text to the help, after the options. Lines that begin with a space keep their line breaks. */
  details(text: string): this {
    const paragraphs = text.trim().replace(/(?<=\S)\n(?=\S)/g, ' ')
    return this.addHelpText('after', `\n${this.createHelp().boxWrap(paragraphs, 80)}`)
  }

  examples(...lines: readonly string[]): this {
    this.exampleLines.push(...lines)
    const heading = lines.length === 1 ? 'Example' : 'Examples'
    return this.addHelpText('after', `\n${heading}:${lines.map((line) => `\n  $ ${line}`).join('')}`)
  }

  /** Sets what the command does. A result is printed. */
  act<Given extends readonly unknown[]>(action: Action<Given>): this {
    return this.action(async () => {
      // Commander does not know the types of what it has parsed.
      const given = [...this.processedArgs, this.opts()] as unknown as Given
      const result = await action(this.#invocation(), ...given)
      if (typeof result === 'object') await this.run.output.print(result)
      else if (result) this.run.exitCode = result
    })
  }

  /** Sets what the command does with an existing store. A result is printed. */
  read<Given extends readonly unknown[]>(action: StoreAction<Given, CommandResult | void>): this {
    return this.act((invocation, ...given: Given) =>
      printFromStore(invocation, (store) => action(store, invocation, ...given))
    )
  }

  /** Adds `--wait`, and sets an action that changes the store. Its result is printed. */
  change<Given extends readonly unknown[]>(
    action: StoreAction<Given, CommandResult | void>,
    storeOptions: StoreOptions = {},
  ): this {
    return this.waits().act(async (invocation, ...given: Given) => {
      const change = (store: Store) => action(store, invocation, ...given)
      const { dryRun, days } = this.opts()
      if (!dryRun && this.getOptionValueSource('days') === 'cli') throw usageError('--days needs --dry-run.')
      if (storeOptions.create && await isMissingStore(invocation)) await withEmptyStore(change)
      if (!dryRun) return changeStore(invocation, storeOptions, change)
      // Without --days the action makes the dry run.
      if (!days) return printFromStore(invocation, change)
      const { output } = invocation
      return printFromStore(invocation, (store) =>
        output.progress(async (report) => {
          report('Counting the requests of keys …')
          // Loaded here, with the schemas of all endpoints.
          const preview = await import('./dry-run.ts')
          return await preview.dryRun(store, days, output, async (collect) => {
            const operator = { ...invocation.operator, preview: collect }
            await action(store, { ...invocation, operator }, ...given)
          })
        }))
    })
  }

  /** Refuses a change that no option so far asks for, before the store is opened. */
  requiresChange(): this {
    const options = this.options.filter(({ negate }) => !negate)
    return this.hook('preAction', () => {
      if (options.some((option) => this.getOptionValue(option.attributeName()) !== undefined)) return
      throw usageError(`Nothing to change: pass ${joinList(options.map(({ long }) => long!), 'or')}.`)
    })
  }

  /** Adds `--dry-run` to a change that can cause refusals. */
  dryRuns(): this {
    return this
      .option('--dry-run', 'Change nothing; show which keys and recent requests would be refused')
      .addOption(
        new Option('--days <n>', 'Days of requests that a dry run checks, 1 to 366, including today')
          .argParser(integerBetween(1, 366)).default(7),
      )
  }

  waits(): this {
    return this.option('--wait', 'Wait until every server has applied the change')
  }

  #invocation(): Invocation {
    const { io, output } = this.run
    const { store: storeUrl, actor = currentUser(io.env), wait = false, json = false } = this
      .optsWithGlobals()
    const source = this.getOptionValueSourceWithGlobals('store')
    output.json = json
    if (source === 'cli') {
      warnAboutPasswords(output, [storeUrl])
      output.suggestStore(holdsPassword(storeUrl) ? 'URL' : storeUrl)
    }
    return { storeUrl, operator: { actor }, wait, io, output }
  }
}

/** Whether a word asks for help. */
export function isHelpFlag(word: string): boolean {
  return word === '-h' || word === '--help'
}

/** The names of a command below the program. */
export function pathOf(command: Command): string[] {
  return command.parent === null ? [] : [...pathOf(command.parent), command.name()]
}

/** Prints one warning for people if any of the URLs, all of them arguments, contains a password. */
export function warnAboutPasswords(output: Output, storeUrls: readonly string[]): void {
  if (output.json || !storeUrls.some(holdsPassword)) return
  output.note(
    'warning: A password is visible to other users of this machine in the list of processes. Pass it in PGPASSWORD, or ' +
      'the whole --store URL in PARTNER_API_STORE.',
  )
}

/** What the error says when the result of a change cannot be printed. */
const unprinted: Loss = { detail: 'The change is made.' }

/** Changes the store and prints the result. With `--wait`, also waits until every server has applied the change. */
export async function changeStore(
  invocation: Invocation,
  storeOptions: StoreOptions,
  change: (store: Store) => Promise<CommandResult | void>,
): Promise<void> {
  const { wait, output } = invocation
  if (wait && parseStoreUrl(invocation.storeUrl).kind === 'memory') {
    throw usageError('A memory: store has no other servers to --wait for.')
  }
  await withStore(invocation, storeOptions, async (store) => {
    const made = await change(store)
    if (!made) return
    const result = { ...made, lost: made.lost ?? unprinted }
    const changedAt = performance.now()
    if (!wait) return await output.print(result)
    // Under --json there is one document, which has to include the receipt.
    if (output.json) await output.printNotes(result)
    else await output.print(result)
    const { data, text, lost } = result
    const receipt = await awaitServers(store, output, { data, lost }, changedAt)
    if (output.json) await output.print({ data, text, lost }, { receipt: receiptJson(receipt) })
    else for (const line of receiptLines(receipt)) output.note(line)
  })
}

/** Prints what an action makes of an existing store, which stays open until all of it is printed. */
export function printFromStore(
  invocation: Invocation,
  action: (store: Store) => Promise<CommandResult | void>,
): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const result = await action(store)
    if (result) await invocation.output.print(result)
  })
}

/** @param made What the change has made, for the error when it is unknown who has applied it. */
export async function awaitServers(
  store: Store,
  output: Output,
  made: Pick<ErrorDetails, 'data' | 'lost'>,
  since: number,
): Promise<Receipt> {
  const unknown = (error: unknown) => {
    const { exitCode, code, message } = toCliError(error)
    const detail = `The change is made, but whether every server has applied it is unknown: ${message}`
    return new CliError(exitCode, code, detail, made)
  }
  // Under --json, what was made is not printed yet: an interrupt must not lose it.
  let ending: Promise<void> | undefined
  const stop = (signal: NodeJS.Signals) => {
    const error = unknown(new CliError(1, 'interrupted', 'the wait was interrupted.'))
    ending ??= output.error(error).then(() => endBySignal(signal))
  }
  for (const signal of interrupts) process.once(signal, stop)
  try {
    return await output.progress((report) => {
      report('Waiting until every server has applied the change …')
      return awaitReceipt(store, since)
    })
  } catch (error) {
    throw unknown(error)
  } finally {
    await ending
    for (const signal of interrupts) process.off(signal, stop)
  }
}

export function receiptJson({ ms, replicas }: Receipt): Record<string, unknown> {
  const servers = replicas.map(({ name, applied, ms, skewMs }) => {
    return skewMs === 0 ? { name, applied, ms } : { name, applied, ms, clock_skew_ms: skewMs }
  })
  return { ms, replicas: servers }
}

export function receiptLines({ ms, replicas }: Receipt): string[] {
  const applied = replicas.map(({ name, applied, ms }) =>
    `${printable(name)} ${applied ? 'applied it' : 'did not respond; its lease ended'} after ${ms} ms`
  )
  const skews = replicas.filter(({ skewMs }) => skewMs !== 0).map(({ name, skewMs }) => {
    const skew = `${Math.abs(skewMs)} ms ${skewMs > 0 ? 'ahead of' : 'behind'} the store's clock`
    return `warning: The clock of ${printable(name)} is ${skew}, which determines when keys expire.`
  })
  const none = replicas.length === 0 ? ['No running server has cached older data.'] : []
  return [...none, ...applied, ...skews, `In effect everywhere after ${ms} ms.`]
}
