import { type Command, Option } from 'commander'
import { createKeyAdministration, type IssuedKey, type KeyAdministration } from '../../core/admin/keys.ts'
import { OVERRIDABLE_LIMITS } from '../../core/limits/policies.ts'
import { keyState } from '../../core/keys/state.ts'
import type { Key, LimitOverrides } from '../../core/model.ts'
import { SCOPES } from '../../core/policy/scopes.ts'
import { usageFailure } from '../failure.ts'
import { duration, positiveDuration } from '../input/duration.ts'
import { addLimitOptions, limitChange, type LimitOptions, limitsOf } from '../input/limits.ts'
import { type Invocation, invocationOf } from '../invocation.ts'
import { keyDetails, readableTime } from '../output/readable.ts'
import { printNote, printResult, write } from '../output/print.ts'
import { details, table } from '../output/table.ts'
import { keyWire } from '../output/wire.ts'
import { withStore } from '../store.ts'

interface IssueOptions {
  readonly name: string
  readonly scope?: readonly string[]
  readonly test?: true
  readonly expires?: number
  readonly allow?: readonly string[]
  readonly limit?: LimitOverrides
  readonly quiet?: true
}

interface RotateOptions {
  readonly overlap: number
  readonly expires?: number
  readonly quiet?: true
}

/** `keys issue`, `list`, `show`, `rotate`, `limit`, `disable`, `enable` and `revoke`. */
export function define(keys: Command): void {
  keys.command('issue')
    .description('Make a key for a partner and print it once')
    .argument('<partner>', "The partner's slug")
    .requiredOption('--name <name>', 'What the key is for')
    .addOption(
      new Option('--scope <scope...>', 'Scopes that it holds (default: all that active modules need)')
        .choices(SCOPES),
    )
    .option('--test', 'A test key: what it does is stored as a test and never counted')
    .option('--expires <duration>', 'How long it works, such as 90d (default: for good)', positiveDuration)
    .option('--allow <cidr...>', 'Address ranges from which it may be used (default: anywhere)')
    .option('--limit <policy=quota/seconds>', 'A limit of its own (repeatable)', limitsOf(OVERRIDABLE_LIMITS))
    .option('-q, --quiet', 'Print the key alone')
    .addHelpText(
      'after',
      `
The key is a secret and is kept nowhere: only its digest is. Whoever loses it needs another one.

Examples:
  $ partner-api keys issue acme --name "WordPress plugin"
  $ partner-api keys issue acme --name CI --test --expires 90d --scope read:profiles --allow 192.0.2.0/24
  $ partner-api keys issue acme --name dashboard --quiet | secret-manager store acme-key`,
    )
    .action((partner: string, options: IssueOptions, command: Command) =>
      issue(invocationOf(command), partner, options)
    )

  keys.command('list')
    .description('List keys, oldest first, of one partner or of all')
    .argument('[partner]', "The partner's slug")
    .addHelpText('after', '\nExamples:\n  $ partner-api keys list\n  $ partner-api keys list acme')
    .action((partner: string | undefined, _options: unknown, command: Command) =>
      list(invocationOf(command), partner)
    )

  oneKey(keys, 'show', 'Show one key', (administration, id) => administration.show(id))

  keys.command('rotate')
    .description('Replace a key by a successor that may do the same, and print that once')
    .argument('<key>', "The key's id, as keys list shows it")
    .addOption(
      new Option('--overlap <duration>', 'How long the old key goes on to work; 0 for not at all')
        .argParser(duration).default(86_400_000, '24h'),
    )
    .option(
      '--expires <duration>',
      'How long the successor works (default: as long as the old key would have)',
      positiveDuration,
    )
    .option('-q, --quiet', 'Print the key alone')
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
    .action((id: string, options: RotateOptions, command: Command) =>
      rotate(invocationOf(command), id, options)
    )

  addLimitOptions(
    keys.command('limit')
      .description('Set and clear limits of a key')
      .argument('<key>', "The key's id, as keys list shows it"),
  )
    .addHelpText(
      'after',
      `
Limits that are not named stay. Where a key has none of its own, its partner's count, and then the service's.

Examples:
  $ partner-api keys limit Zt81mQv04KsD --limit key=1200/60 --limit signup=5/60
  $ partner-api keys limit Zt81mQv04KsD --clear-limit key`,
    )
    .action((id: string, options: LimitOptions, command: Command) =>
      limit(invocationOf(command), id, options)
    )

  oneKey(
    keys,
    'disable',
    'Refuse a key until it is enabled again',
    (administration, id) => administration.disable(id),
    ({ id }) => `To take it back: partner-api keys enable ${id}`,
  )
  oneKey(keys, 'enable', 'Let a disabled key in again', (administration, id) => administration.enable(id))
  oneKey(
    keys,
    'revoke',
    'Refuse a key for good',
    (administration, id) => administration.revoke(id),
    () => 'Revoked for good: running servers refuse it within their max staleness (1 s by default).',
  )
}

function oneKey(
  keys: Command,
  name: string,
  description: string,
  act: (administration: KeyAdministration, id: string) => Promise<Key>,
  note?: (key: Key) => string,
): void {
  keys.command(name)
    .description(description)
    .argument('<key>', "The key's id, as keys list shows it")
    .addHelpText('after', `\nExample:\n  $ partner-api keys ${name} Zt81mQv04KsD`)
    .action((id: string, _options: unknown, command: Command) => {
      const invocation = invocationOf(command)
      return withStore(invocation, {}, async (store) => {
        const key = await act(createKeyAdministration(store, invocation), id)
        await printKey(invocation, key)
        if (note) printNote(note(key))
      })
    })
}

function issue(invocation: Invocation, partner: string, options: IssueOptions): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const now = Date.now()
    const { key, text } = await createKeyAdministration(store, { ...invocation, clock: () => now }).issue({
      partner,
      name: options.name,
      environment: options.test ? 'test' : 'live',
      ...(options.scope && { scopes: options.scope }),
      expiresAt: options.expires === undefined ? undefined : now + options.expires,
      allow: options.allow ?? [],
      limits: options.limit ?? {},
    })
    await printIssued(invocation, { key, text }, now, options.quiet)
    if (!options.quiet && key.scopes.length === 0) {
      printNote(
        `It holds no scope, because ${partner} has no active module: partner-api modules activate ${partner} …`,
      )
    }
  })
}

function rotate(invocation: Invocation, id: string, options: RotateOptions): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const now = Date.now()
    const keys = createKeyAdministration(store, { ...invocation, clock: () => now })
    const issued = await keys.rotate(id, {
      overlapMs: options.overlap,
      expiresAt: options.expires === undefined ? undefined : now + options.expires,
    })
    await printIssued(invocation, issued, now, options.quiet)
    if (options.quiet) return
    const { retiresAt } = await keys.show(id)
    printNote(
      retiresAt === now
        ? `Key ${id} has ended: running servers refuse it within their max staleness (1 s by default).`
        : `Key ${id} works until ${readableTime(retiresAt)}.`,
    )
  })
}

async function limit(invocation: Invocation, id: string, options: LimitOptions): Promise<void> {
  const change = limitChange(options)
  if (change === undefined) throw usageFailure('What is to be changed? --limit and --clear-limit say it.')
  await withStore(invocation, {}, async (store) => {
    await printKey(invocation, await createKeyAdministration(store, invocation).limit(id, change))
  })
}

async function printIssued(
  invocation: Invocation,
  { key, text }: IssuedKey,
  now: number,
  quiet = false,
): Promise<void> {
  const { id, ...rest } = keyWire(key, now)
  const data = { id, key: text, ...rest }
  if (quiet && !invocation.json) await write(`${text}\n`)
  else await printResult(invocation, data, details([['key', text], ...keyDetails(key, now)]))
  if (!quiet) printNote('The key stands here once and is kept nowhere: store it now.')
}

function list(invocation: Invocation, partner: string | undefined): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const now = Date.now()
    const keys = await createKeyAdministration(store, invocation).list(partner)
    await printResult(
      invocation,
      keys.map((key) => keyWire(key, now)),
      keys.length === 0 ? '' : table(
        ['id', 'partner', 'name', 'kind', 'hint', 'state', 'scopes', 'expires', 'last used'],
        keys.map((key) => [
          key.id,
          key.partner,
          key.name,
          key.environment,
          `…${key.hint}`,
          keyState(key, now),
          String(key.scopes.length),
          readableTime(key.expiresAt),
          readableTime(key.lastUsedAt),
        ]),
      ),
    )
    if (keys.length === 0) {
      printNote('There are no keys yet. To issue one: partner-api keys issue PARTNER --name NAME')
    }
  })
}

function printKey(invocation: Invocation, key: Key): Promise<void> {
  const now = Date.now()
  return printResult(invocation, keyWire(key, now), details(keyDetails(key, now)))
}
