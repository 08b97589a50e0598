import { Option } from 'commander'
import { createKeyAdministration, DEFAULT_OVERLAP_MS, type IssuedKey } from '../../core/admin/keys.ts'
import { keyState } from '../../core/keys/lifecycle.ts'
import type { MaybePromise } from '../../core/lib/promise.ts'
import { type Key, type LimitOverrides, SCOPES } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'
import type { CliCommand, CommandResult, Invocation, StoreAction } from '../command.ts'
import { usageError } from '../errors.ts'
import { type SaveKey, withKeyFile } from '../files.ts'
import { defineImport } from './import.ts'
import {
  clearLimitOption,
  durationOption,
  endOption,
  keyHelp,
  limitChange,
  limitOption,
  type LimitOptions,
  outOption,
  type ResolveEnd,
  slugHelp,
} from '../options.ts'
import { defineRotation } from './rotation.ts'
import { defineList } from './list.ts'
import { keyJson } from '../../core/admin/record-json.ts'
import { formatDetails, formatLimits, formatTime, printable } from '../output/text.ts'
import { confirm, isInteractive } from '../prompt.ts'
import { timeOf } from '../store/open.ts'

interface KeyOutputOptions {
  readonly quiet?: true
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

interface RotateOptions extends KeyOutputOptions {
  readonly overlap: number
  readonly expires?: ResolveEnd
  readonly dryRun?: true
}

interface StateOptions {
  readonly yes?: true
  readonly dryRun?: true
}

interface UpdateOptions extends LimitOptions {
  readonly name?: string
  readonly allow?: readonly string[]
  readonly clearAllow?: true
  readonly expires?: ResolveEnd
  readonly never?: true
}

const endForms = 'End: a duration (90d), a date (its end, UTC) or an RFC 3339 instant'

/** For changes without --wait. */
const stalenessNote = ': running servers refuse it within their max staleness (1 s by default).'

export function define(keys: CliCommand): void {
  keys.command('issue')
    .description('Make a key for a partner and print it once')
    .argument('<partner>', slugHelp)
    .requiredOption('--name <name>', 'Purpose of the key')
    .addOption(
      new Option('--scope <scope...>', 'Scopes of the key (default: all that active modules need)')
        .choices(SCOPES),
    )
    .option('--test', 'Make a test key: its signups are stored as tests and never counted')
    .option('--expires <when>', `${endForms} (default: never)`, endOption)
    .option('--allow <cidr...>', 'Address ranges that may use the key (default: all)')
    .addOption(limitOption())
    .addOption(outOption('key'))
    .option('-q, --quiet', 'Print only the key')
    .change(issue)
    .details(`
The key is a secret. The store keeps only its digest, so a lost key cannot be recovered; issue another one. --out never
overwrites a file; with it, the output of --json has the file name as out instead of the key.`)
    .examples(
      'partner-api keys issue acme --name "WordPress plugin"',
      'partner-api keys issue acme --name "WordPress plugin" --out acme.key',
      'partner-api keys issue acme --name CI --test --expires 90d --scope read:profiles --allow 192.0.2.0/24',
      'partner-api keys issue acme --name dashboard --quiet | secret-manager store acme-key',
    )

  defineImport(keys)

  defineList(keys)

  keys.command('show')
    .description('Show one key')
    .argument('<key>', keyHelp)
    .read(async (store, invocation, id: string) =>
      keyResult(store, await createKeyAdministration(store, invocation).show(id))
    )
    .examples('partner-api keys show Zt81mQv04KsD')

  keys.command('rotate')
    .description('Replace a key by a successor with the same permissions, and print that once')
    .argument('<key>', keyHelp)
    .addOption(
      new Option('--overlap <duration>', 'How long the old key keeps working; 0 ends it at once')
        .argParser(durationOption).default(DEFAULT_OVERLAP_MS, '24h'),
    )
    .option('--expires <when>', `${endForms}, of the successor (default: as the old key)`, endOption)
    .addOption(outOption('key'))
    .option('-q, --quiet', 'Print only the key')
    .change(rotate)
    .dryRuns()
    .details(`
The successor has the name, scopes, address ranges, limits and expiry of the old key. If a key may have leaked, rotate
it with --overlap 0, which ends it at once.`)
    .examples(
      'partner-api keys rotate Zt81mQv04KsD',
      'partner-api keys rotate Zt81mQv04KsD --overlap 7d --expires 90d',
      'partner-api keys rotate Zt81mQv04KsD --overlap 0 --quiet | secret-manager store acme-key',
    )

  defineRotation(keys)

  keys.command('update')
    .description('Change the name, the address ranges and the expiry of a key')
    .argument('<key>', keyHelp)
    .option('--name <name>', 'Purpose of the key')
    .option('--allow <cidr...>', 'Address ranges that may use the key, replacing the current ones')
    .addOption(new Option('--clear-allow', 'Allow all addresses').conflicts('allow'))
    .option('--expires <when>', endForms, endOption)
    .addOption(new Option('--never', 'Remove the expiry').conflicts('expires'))
    .hook('preAction', requireChange)
    .change(update)
    .dryRuns()
    .details(
      'Other members do not change. Expired and revoked keys cannot be updated, and --never does not undo a rotation.',
    )
    .examples(
      'partner-api keys update Zt81mQv04KsD --name "Shop plugin" --allow 192.0.2.0/24 2001:db8::/32',
      'partner-api keys update Zt81mQv04KsD --expires 2027-06-30',
    )

  keys.command('limit')
    .description('Set and clear limits of a key')
    .argument('<key>', keyHelp)
    .addOption(limitOption('Set a limit; =0 for none (repeatable)'))
    .addOption(clearLimitOption())
    .hook('preAction', requireChange)
    .change(update)
    .dryRuns()
    .details(
      "Other limits do not change. Without a limit of the key, its partner's applies, and then the service's.",
    )
    .examples(
      'partner-api keys limit Zt81mQv04KsD --limit key=1200/60 --limit signup=5/60',
      'partner-api keys limit Zt81mQv04KsD --clear-limit key',
    )

  addStateCommand(
    keys,
    'disable',
    'Refuse a key until it is enabled again',
    (id, { output }) => [`To undo this: ${output.command(`keys enable ${id}`)}`],
  ).dryRuns()
  addStateCommand(keys, 'enable', 'Accept a disabled key again', () => [])
  addStateCommand(
    keys,
    'revoke',
    'Refuse a key permanently',
    (_id, { wait }) => [`Revoked permanently${wait ? '.' : stalenessNote}`],
  ).option('-y, --yes', 'Do not ask for confirmation on a terminal').dryRuns()
}

function addStateCommand(
  keys: CliCommand,
  name: 'disable' | 'enable' | 'revoke',
  description: string,
  notes: (id: string, invocation: Invocation) => readonly string[],
): CliCommand {
  return keys.command(name)
    .description(description)
    .argument('<key>', keyHelp)
    .change(async (store, invocation, id: string, { yes, dryRun }: StateOptions) => {
      const keys = createKeyAdministration(store, invocation)
      // Without a terminal it goes on: scripts revoke keys in emergencies.
      if (name === 'revoke' && !yes && !dryRun && isInteractive(invocation.io)) {
        const key = await keys.show(id)
        const consequence = `This revokes key ${id} (${printable(key.name)}) of ${key.partner} permanently.`
        await confirm(invocation.io, consequence, id)
      }
      const key = await keys[name](id)
      return { ...keyResult(store, key), notes: () => notes(id, invocation) }
    })
    .examples(`partner-api keys ${name} Zt81mQv04KsD`)
}

const issue: StoreAction<[string, IssueOptions]> = (store, invocation, partner, options) => {
  const { name, scope, test, expires, allow = [], limit: limits = {}, ...output } = options
  return withKeyFile(invocation, output.out, async (save) => {
    const { now, keys } = administerKeys(store, invocation)
    const environment = test ? 'test' : 'live'
    const permissions = { allow, limits, ...(scope && { scopes: scope }) }
    const issued = await keys.issue({ partner, name, environment, expiresAt: expires?.(now), ...permissions })
    const advice = `To activate one: ${invocation.output.command(`modules activate ${partner} …`)}`
    return newKeyResult(
      store,
      issued,
      output,
      save,
      () =>
        issued.key.scopes.length > 0
          ? []
          : [`The key has no scopes, because ${partner} has no active module. ${advice}`],
    )
  })
}

const rotate: StoreAction<[string, RotateOptions]> = (store, invocation, id, options) => {
  const { overlap, expires, dryRun, ...output } = options
  const rotateKey = async (save: SaveKey) => {
    const { now, keys } = administerKeys(store, invocation)
    const issued = await keys.rotate(id, { overlapMs: overlap, expiresAt: expires?.(now) })
    return newKeyResult(store, issued, output, save, async () => [
      overlap === 0
        ? `Key ${id} no longer works${invocation.wait ? '.' : stalenessNote}`
        : `Key ${id} works until ${formatTime((await keys.show(id)).retiresAt)}.`,
    ])
  }
  // A dry run prints no key.
  return dryRun ? rotateKey(() => Promise.resolve()) : withKeyFile(invocation, output.out, rotateKey)
}

/** Before the store is opened. */
function requireChange(command: { opts(): UpdateOptions }): void {
  const { name, allow, clearAllow, expires, never, ...options } = command.opts()
  const limits = limitChange(options)
  if (name === undefined && !allow && !clearAllow && !expires && !never && !limits) {
    throw usageError('Nothing to change: pass an option, see --help.')
  }
}

/** `update` and `limit`. */
const update: StoreAction<[string, UpdateOptions]> = async (store, invocation, id, options) => {
  const { name, allow, clearAllow, expires, never, ...limitOptions } = options
  const { now, keys } = administerKeys(store, invocation)
  const expiresAt = never ? null : expires?.(now)
  const limits = limitChange(limitOptions)
  return keyResult(store, await keys.update(id, { name, allow: clearAllow ? [] : allow, expiresAt, limits }))
}

/** All instants of one command are the same, so that durations count from it exactly. */
function administerKeys(store: Store, { actor }: Invocation) {
  const now = timeOf(store)
  return { now, keys: createKeyAdministration(store, { actor, clock: () => now }) }
}

function keyResult(store: Store, key: Key): CommandResult {
  const now = timeOf(store)
  return { data: keyJson(key, now), text: formatDetails(keyDetails(key, now)) }
}

/** The result with the secret, or with the name of its file. */
async function newKeyResult(
  store: Store,
  { key, text }: IssuedKey,
  { quiet, out }: KeyOutputOptions,
  save: SaveKey,
  notes: () => MaybePromise<readonly string[]>,
): Promise<CommandResult> {
  await save(text, key.id)
  const now = timeOf(store)
  const { id, ...rest } = keyJson(key, now)
  const [name, value, warning] = out === undefined
    ? ['key', text, 'This key is shown only once. Store it now.']
    : ['out', out, `The only copy of the key is in ${out}.`]
  const data = { id, [name]: value, ...rest }
  if (quiet) return { data, text: out === undefined ? `${text}\n` : '' }
  return {
    data,
    text: formatDetails([[name, value], ...keyDetails(key, now)]),
    notes: async () => [warning, ...await notes()],
  }
}

function keyDetails(key: Key, now: number): (readonly [name: string, value: string])[] {
  const imported = key.digest.length > 64 ? ['imported'] : []
  const until = key.state === 'revoked' ? '' : `, until ${formatTime(key.retiresAt)}`
  const rotation = key.successorId === undefined ? [] : [['replaced by', key.successorId + until] as const]
  return [
    ['id', key.id],
    ['partner', key.partner],
    ['name', key.name],
    ['kind', [key.environment, ...imported, ...(key.hint ? [`ends in ${key.hint}`] : [])].join(', ')],
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
