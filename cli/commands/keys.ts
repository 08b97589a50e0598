import { type Command, Option } from 'commander'
import { createKeyAdministration, DEFAULT_OVERLAP_MS, type IssuedKey } from '../../core/admin/keys.ts'
import { keyState } from '../../core/keys/lifecycle.ts'
import type { MaybePromise } from '../../core/lib/promise.ts'
import type { Key, LimitOverrides } from '../../core/model.ts'
import { SCOPES } from '../../core/policy/modules.ts'
import { action, addWaitOption, changeStore, type CommandResult, type WaitOptions } from '../command.ts'
import { usageError } from '../errors.ts'
import { type SaveKey, withKeyFile } from '../files.ts'
import type { Invocation } from '../invocation.ts'
import {
  addLimitOption,
  addLimitOptions,
  durationOption,
  endOption,
  limitChange,
  type LimitOptions,
  optionParser,
  type ResolveEnd,
} from '../options.ts'
import { keyJson } from '../output/json.ts'
import { printList, printNote, printResult } from '../output/print.ts'
import { createTableFormatter, formatDetails, formatLimits, formatTime } from '../output/text.ts'
import { timeOf, withStore } from '../store.ts'

/** How a new key is handed over. */
interface KeyOutputOptions extends WaitOptions {
  readonly quiet?: boolean
  readonly out?: string
}

interface IssueOptions extends KeyOutputOptions {
  readonly name: string
  readonly scope?: readonly string[]
  readonly test?: true
  readonly expires?: ResolveEnd
  readonly allow?: readonly string[]
  readonly limit?: LimitOverrides
}

interface UpdateOptions extends LimitOptions, WaitOptions {
  readonly name?: string
  readonly allow?: readonly string[]
  readonly clearAllow?: true
  readonly expires?: ResolveEnd
  readonly never?: true
}

/** `keys issue`, `list`, `show`, `rotate`, `update`, `limit`, `disable`, `enable` and `revoke`. */
export function define(keys: Command): void {
  addKeyOutputOptions(addLimitOption(
    keys.command('issue')
      .description('Make a key for a partner and print it once')
      .argument('<partner>', "The partner's slug")
      .requiredOption('--name <name>', 'What the key is for')
      .addOption(
        new Option('--scope <scope...>', 'Scopes that it holds (default: all that active modules need)')
          .choices(SCOPES),
      )
      .option('--test', 'A test key: what it does is stored as a test and never counted')
      .option('--expires <when>', `${endForms} (default: never)`, endOption)
      .option('--allow <cidr...>', 'Address ranges from which it may be used (default: anywhere)'),
  ))
    .addHelpText(
      'after',
      `
The key is a secret and is not stored: only its digest is. If it is lost, issue another one. --out never overwrites
a file; with it, --json has the name of the file as out, and no key.

Examples:
  $ partner-api keys issue acme --name "WordPress plugin"
  $ partner-api keys issue acme --name "WordPress plugin" --out acme.key
  $ partner-api keys issue acme --name CI --test --expires 90d --scope read:profiles --allow 192.0.2.0/24
  $ partner-api keys issue acme --name dashboard --quiet | secret-manager store acme-key`,
    )
    .action(action(issue))

  keys.command('list')
    .description('List keys, oldest first, of one partner or of all')
    .argument('[partner]', "The partner's slug")
    .addHelpText(
      'after',
      `
ENDS is when a key expires or, if that is earlier, when the overlap after its rotation is over.

Examples:
  $ partner-api keys list
  $ partner-api keys list acme`,
    )
    .action(action(list))

  keys.command('show')
    .description('Show one key')
    .argument('<key>', keyArgumentHelp)
    .addHelpText('after', '\nExample:\n  $ partner-api keys show Zt81mQv04KsD')
    .action(action(show))

  addKeyOutputOptions(
    keys.command('rotate')
      .description('Replace a key by a successor that may do the same, and print that once')
      .argument('<key>', keyArgumentHelp)
      .addOption(
        new Option('--overlap <duration>', 'How long the old key goes on to work; 0 for not at all')
          .argParser(durationOption).default(DEFAULT_OVERLAP_MS, '24h'),
      )
      .option(
        '--expires <when>',
        `${endForms}, of the successor (default: when the old key would have)`,
        endOption,
      ),
  )
    .addHelpText(
      'after',
      `
The successor has the name, scopes, addresses, limits and expiry of the old key. A key that is thought to be in
wrong hands is rotated with --overlap 0, which ends it at once.

Examples:
  $ partner-api keys rotate Zt81mQv04KsD
  $ partner-api keys rotate Zt81mQv04KsD --overlap 7d --expires 90d
  $ partner-api keys rotate Zt81mQv04KsD --overlap 0 --quiet | secret-manager store acme-key`,
    )
    .action(action(rotate))

  addWaitOption(
    keys.command('update')
      .description('Change the name, the addresses and the expiry of a key')
      .argument('<key>', keyArgumentHelp)
      .option('--name <name>', 'What the key is for')
      .option('--allow <cidr...>', 'Address ranges from which it may be used, in place of those it has')
      .option('--clear-allow', 'It may be used from anywhere')
      .option('--expires <when>', endForms, endOption)
      .option('--never', 'It does not expire'),
  )
    .addHelpText(
      'after',
      `
What is not named stays. A key that has expired or was revoked is no longer changed, and --never does not undo a
rotation.

Examples:
  $ partner-api keys update Zt81mQv04KsD --name "Shop plugin" --allow 192.0.2.0/24 2001:db8::/32
  $ partner-api keys update Zt81mQv04KsD --expires 2027-06-30`,
    )
    .action(action(update))

  addWaitOption(
    addLimitOptions(
      keys.command('limit')
        .description('Set and clear limits of a key')
        .argument('<key>', keyArgumentHelp),
    ),
  )
    .addHelpText(
      'after',
      `
Limits that are not named stay. Where a key has none of its own, its partner's count, and then the service's.

Examples:
  $ partner-api keys limit Zt81mQv04KsD --limit key=1200/60 --limit signup=5/60
  $ partner-api keys limit Zt81mQv04KsD --clear-limit key`,
    )
    .action(action(update))

  addStateCommand(
    keys,
    'disable',
    'Refuse a key until it is enabled again',
    ({ id }) => `To take it back: partner-api keys enable ${id}`,
  )
  addStateCommand(keys, 'enable', 'Let a disabled key in again')
  addStateCommand(
    keys,
    'revoke',
    'Refuse a key for good',
    (_key, waits) => `Revoked for good${waits ? '.' : stalenessNote}`,
  )
}

const keyArgumentHelp = "The key's id, as keys list shows it"
const endForms = 'When it ends: a duration (90d), a date (its end, UTC) or an RFC 3339 instant'

/** For who does not wait until servers have followed. */
const stalenessNote = ': running servers refuse it within their max staleness (1 s by default).'

function addStateCommand(
  keys: Command,
  name: 'disable' | 'enable' | 'revoke',
  description: string,
  note?: (key: Key, waits: boolean) => string,
): void {
  addWaitOption(keys.command(name).description(description).argument('<key>', keyArgumentHelp))
    .addHelpText('after', `\nExample:\n  $ partner-api keys ${name} Zt81mQv04KsD`)
    .action(
      action((invocation, id: string, options: WaitOptions) =>
        changeStore(invocation, {}, options, async (store) => {
          const key = await createKeyAdministration(store, invocation)[name](id)
          return {
            ...keyResult(key, timeOf(store)),
            notes: () => note ? [note(key, options.wait ?? false)] : [],
          }
        })
      ),
    )
}

function show(invocation: Invocation, id: string): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const { data, text } = keyResult(await createKeyAdministration(store, invocation).show(id), timeOf(store))
    await printResult(invocation, data, text)
  })
}

function issue(invocation: Invocation, partner: string, options: IssueOptions): Promise<void> {
  return withKeyFile(options.out, (save) =>
    changeStore(invocation, {}, options, async (store) => {
      const now = timeOf(store)
      const issued = await createKeyAdministration(store, { ...invocation, clock: () => now }).issue({
        partner,
        name: options.name,
        environment: options.test ? 'test' : 'live',
        ...(options.scope && { scopes: options.scope }),
        expiresAt: options.expires?.(now),
        allow: options.allow ?? [],
        limits: options.limit ?? {},
      })
      return newKeyResult(issued, now, options, save, () =>
        issued.key.scopes.length > 0 ? [] : [
          `It holds no scope, because ${partner} has no active module: partner-api modules activate ${partner} …`,
        ])
    }))
}

function rotate(
  invocation: Invocation,
  id: string,
  options: KeyOutputOptions & { readonly overlap: number; readonly expires?: ResolveEnd },
): Promise<void> {
  return withKeyFile(options.out, (save) =>
    changeStore(invocation, {}, options, async (store) => {
      const now = timeOf(store)
      const keys = createKeyAdministration(store, { ...invocation, clock: () => now })
      const issued = await keys.rotate(id, {
        overlapMs: options.overlap,
        expiresAt: options.expires?.(now),
      })
      return newKeyResult(issued, now, options, save, async () => {
        const { retiresAt } = await keys.show(id)
        return [
          retiresAt === now
            ? `Key ${id} has ended${options.wait ? '.' : stalenessNote}`
            : `Key ${id} works until ${formatTime(retiresAt)}.`,
        ]
      })
    }))
}

/** What `update` and `limit` do. */
async function update(
  invocation: Invocation,
  id: string,
  { name, allow, clearAllow, expires, never, ...options }: UpdateOptions,
): Promise<void> {
  const limits = limitChange(options)
  if (allow && clearAllow) throw usageError('--allow and --clear-allow contradict each other.')
  if (expires && never) throw usageError('--expires and --never contradict each other.')
  if (name === undefined && !allow && !clearAllow && !expires && !never && !limits) {
    throw usageError('Nothing to change: pass an option that says what, see --help.')
  }
  await changeStore(invocation, {}, options, async (store) => {
    const now = timeOf(store)
    const keys = createKeyAdministration(store, { ...invocation, clock: () => now })
    const expiresAt = never ? null : expires?.(now)
    return keyResult(await keys.update(id, { name, allow: clearAllow ? [] : allow, expiresAt, limits }), now)
  })
}

function keyResult(key: Key, now: number): CommandResult {
  return { data: keyJson(key, now), text: formatDetails(keyDetails(key, now)) }
}

const newFileOption = optionParser(
  'It has to be the path of a new file; without --out, the key goes to standard output.',
  (text) => text === '' || text === '-' ? undefined : text,
)

function addKeyOutputOptions(command: Command): Command {
  return addWaitOption(
    command
      .option('--out <file>', 'Write the key to a new file of mode 0600, and do not print it', newFileOption)
      .option('-q, --quiet', 'Print the key alone'),
  )
}

/** A new key, with its secret unless that goes to a file. With --quiet, the secret is all that is printed. */
async function newKeyResult(
  { key, text }: IssuedKey,
  now: number,
  { quiet = false, out }: KeyOutputOptions,
  save: SaveKey,
  notes: () => MaybePromise<readonly string[]>,
): Promise<CommandResult> {
  await save(text, key.id)
  const { id, ...rest } = keyJson(key, now)
  const [name, value] = out === undefined ? ['key', text] as const : ['out', out] as const
  const warning = out === undefined
    ? 'This key is shown only once. Store it now.'
    : `The key is in ${out} and nowhere else.`
  return {
    data: { id, [name]: value, ...rest },
    text: !quiet
      ? formatDetails([[name, value], ...keyDetails(key, now)])
      : out === undefined
      ? `${text}\n`
      : '',
    notes: async () => quiet ? [] : [warning, ...await notes()],
  }
}

function list(invocation: Invocation, partner: string | undefined): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const now = timeOf(store)
    const headings = ['id', 'partner', 'name', 'kind', 'hint', 'state', 'scopes', 'ends', 'last used']
    const addRows = createTableFormatter(headings)
    const { last } = await printList(invocation, createKeyAdministration(store, invocation).list(partner), {
      toJson: (key) => keyJson(key, now),
      text: (keys) =>
        addRows(keys.map((key) => [
          key.id,
          key.partner,
          key.name,
          key.environment,
          `…${key.hint}`,
          keyState(key, now),
          String(key.scopes.length),
          formatTime(endTime(key)),
          formatTime(key.lastUsedAt),
        ])),
    })
    if (last === undefined) {
      printNote('There are no keys yet. To issue one: partner-api keys issue PARTNER --name NAME')
    }
  })
}

/** When a key stops working: at its expiry or at the end of its overlap, whichever is first; `undefined` for never. */
function endTime({ expiresAt, retiresAt }: Key): number | undefined {
  const end = Math.min(expiresAt ?? Infinity, retiresAt ?? Infinity)
  return end === Infinity ? undefined : end
}

/** A key in names and values, for people. */
function keyDetails(key: Key, now: number): (readonly [name: string, value: string])[] {
  const rotation = key.successorId === undefined
    ? []
    : [['replaced by', `${key.successorId}, until ${formatTime(key.retiresAt)}`] as const]
  return [
    ['id', key.id],
    ['partner', key.partner],
    ['name', key.name],
    ['kind', `${key.environment}, ends in ${key.hint}`],
    ['state', keyState(key, now)],
    ['scopes', key.scopes.join(' ') || 'none'],
    ['allowed from', key.allow.join(' ') || 'anywhere'],
    ['limits', formatLimits(key.limits)],
    ['created', formatTime(key.createdAt)],
    ['expires', formatTime(key.expiresAt)],
    ...rotation,
    ['last used', formatTime(key.lastUsedAt)],
  ]
}
