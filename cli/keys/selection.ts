/** The options that select keys, and the changes of many keys, one after the other. */
import { Option } from 'commander'
import { findPartner, readModules } from '../../core/admin/apply.ts'
import { oldestFirst } from '../../core/admin/change-set.ts'
import { requireNames } from '../../core/admin/validate.ts'
import { type Environment, type Key, KEY_STATES, type KeyState, type Scope } from '../../core/model.ts'
import type { KeyFilter } from '../../core/ports/changes.ts'
import { pagesOf, readKeys, type Store } from '../../core/ports/store.ts'
import { awaitServers, type CliCommand, type Invocation, receiptJson, receiptLines } from '../command.ts'
import { CliError, toCliError, usageError } from '../errors.ts'
import { tagOption } from '../options.ts'
import type { CommandResult } from '../output/print.ts'
import { pluralize } from '../output/text.ts'
import { confirm } from '../prompt.ts'
import { timeOf } from '../store/open.ts'

/** Durations are milliseconds. */
export interface SelectionOptions {
  readonly partner?: string | undefined
  readonly expiring?: number
  readonly unused?: number
  readonly state?: readonly KeyState[]
  readonly scope?: Scope
  readonly tag?: string
  readonly environment?: Environment
}

export function withSelection(command: CliCommand): CliCommand {
  return command
    .option('--expiring <duration>', 'Only keys in force that end within this time')
    .option('--unused <duration>', 'Only keys in force, issued longer ago than this and unused since')
    .addOption(new Option('--state <state...>', 'Only keys in one of these states').choices(KEY_STATES))
    .option('--scope <scope>', 'Only keys with this scope')
    .option('--tag <tag>', 'Only keys with this tag', tagOption)
    .addOption(new Option('--environment <kind>', 'Only keys of this kind').choices(['live', 'test']))
}

/** Lets a command that takes a key take options that select many instead. */
export function selectsKeys(command: CliCommand): CliCommand {
  const { length } = command.options
  const selection = withSelection(command.option('--partner <partner>', 'Only keys of this partner'))
    .options.slice(length)
  return command.option('-y, --yes', 'Do not ask for confirmation').hook('preAction', () => {
    const isSelective = selection.some((each) => command.getOptionValue(each.attributeName()) !== undefined)
    if (isSelective !== command.args.length > 0) return
    throw usageError(
      'Pass either the id of one key, or options that select keys, such as --partner or --unused.',
    )
  })
}

export async function toFilter(store: Store, options: SelectionOptions, now: number): Promise<KeyFilter> {
  const { partner, expiring, unused, state: states, scope, tag, environment } = options
  if (partner !== undefined) await findPartner(store, partner)
  if (scope !== undefined) requireNames('scope', [scope], (await readModules(store)).scopes)
  return {
    now,
    partner,
    environment,
    scope,
    tag,
    states,
    endsBefore: expiring === undefined ? undefined : now + expiring,
    unusedSince: unused === undefined ? undefined : now - unused,
  }
}

/** How often a change of one key is tried, each time until other changes have interrupted it eight times. */
const maxTries = 20

/** Handles the error of a key: others may have changed it since it was selected. @throws the error of anything else. */
type Skip = (id: string) => (error: unknown) => undefined

/**
 * Makes a change of keys in parts. Where other changes interrupt one, its halves are tried: a change of few keys
 * takes less time, and finishes beside a steady writer. A key is skipped if its change fails alone.
 */
export async function* inParts<T>(
  keys: readonly Key[],
  skip: Skip,
  change: (part: readonly Key[]) => Promise<T>,
): AsyncGenerator<T> {
  const parts = [keys]
  let tries = 0
  while (parts.length > 0) {
    const part = parts.shift()!
    let result: T
    tries++
    try {
      result = await change(part)
    } catch (error) {
      const isInterrupted = toCliError(error).code === 'concurrent_change'
      if (isInterrupted && part.length > 1) {
        const middle = Math.ceil(part.length / 2)
        parts.unshift(part.slice(0, middle), part.slice(middle))
        tries = 0
      } else if (isInterrupted && tries < maxTries) {
        parts.unshift(part)
      } else if (part.length === 1) {
        skip(part[0]!.id)(error)
        tries = 0
      } else {
        throw error
      }
      continue
    }
    tries = 0
    yield result
  }
}

/**
 * Changes the keys that are selected now, oldest first, and prints each result before the next is made.
 * @param states The states that keys are selected by without --state. @param isDone Whether a key was rotated before.
 */
export async function changeSelected(
  store: Store,
  { io, output, wait }: Invocation,
  [name, ...states]: readonly [name: string, ...KeyState[]],
  { yes, dryRun, ...options }: SelectionOptions & { readonly yes?: true; readonly dryRun?: true },
  change: (page: readonly Key[], skip: Skip) => AsyncIterable<CommandResult>,
  isDone: (key: Key) => boolean = () => false,
): Promise<void> {
  const filter = await toFilter(store, { state: states, ...options }, timeOf(store))
  /** Why keys were skipped, by id. */
  const skipped = new Map<string, string>()
  const partners = new Set<string>()
  let count = 0
  let last: Key | undefined
  for await (const key of readKeys(store, filter)) {
    last = key
    count++
    if (isDone(key)) skipped.set(key.id, 'key_rotated')
    else partners.add(key.partner)
  }
  count -= skipped.size
  const what = `${pluralize(count, 'key')} of ${pluralize(partners.size, 'partner')}`
  if (count > 0 && !yes && !dryRun) await confirm(io, `This ${name}s ${what}.`, name)

  const skip: Skip = (id) => (error) => {
    const { code } = toCliError(error)
    if (!/^key_(?!not_written)|^concurrent_change$/.test(code)) throw error
    skipped.set(id, code)
  }
  async function* results(): AsyncGenerator<CommandResult> {
    const readPage = (after: Key | undefined, rows: number) => store.listKeys(filter, after, rows)
    for await (const page of last ? pagesOf(readPage, dryRun ? 1 : 100) : []) {
      yield* change(page.filter((key) => oldestFirst(key, last!) <= 0 && !isDone(key)), skip)
    }
  }
  if (dryRun) {
    await Array.fromAsync(results(), () => 0)
    return
  }
  let done = 0
  await output.progress(async (report) => {
    for await (const { data, text, lost } of results()) {
      done++
      // On a terminal the rows themselves show the progress.
      if (!io.stdout.isTTY) report(pluralize(done, 'row'))
      await output.writeRows([data], text, lost ?? { detail: `Changed ${done} of ${what}.` })
    }
  })
  const isAwaited = wait && done > 0
  const receipt = isAwaited ? await awaitServers(store, output, {}, performance.now()) : undefined
  const counts: Record<string, number> = {}
  for (const code of skipped.values()) counts[code] = (counts[code] ?? 0) + 1
  const others = Object.entries(counts).map(([code, n]) => `; skipped: ${n} ${code.replace('key_', '')}`)
  const changed = count > 0 ? `Changed ${done} of ${what}` : `There are no such keys to ${name}`
  output.note(`${changed}${others.join('').replace('_', ' ')}.`)
  if (receipt) {
    for (const line of receiptLines(receipt)) output.note(line)
  }
  const detail = 'Other changes interrupted some of these. Repeat the command.'
  if ('concurrent_change' in counts) throw new CliError(1, 'concurrent_change', detail)
  await output.endList(receipt ? { skipped: counts, receipt: receiptJson(receipt) } : { skipped: counts })
}
