import { createAdministrator, findKey } from '../../core/admin/apply.ts'
import { disableChanges, enableChanges, revocationChanges } from '../../core/admin/key-plans.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { DEFAULT_OVERLAP_MS } from '../../core/admin/rotation.ts'
import { keyJson } from '../../core/admin/record-json.ts'
import { keyState } from '../../core/keys/lifecycle.ts'
import { readQuotaUse } from '../../core/limits/partner-quotas.ts'
import { MS_PER_DAY, rfc3339 } from '../../core/lib/time.ts'
import type { Environment, Key } from '../../core/model.ts'
import type { Change } from '../../core/ports/changes.ts'
import { readKeys, type Store } from '../../core/ports/store.ts'
import type { CliCommand, Invocation, StoreAction } from '../command.ts'
import { type LinkOptions, newLink, withClaim } from '../commands/claims.ts'
import { usageError } from '../errors.ts'
import {
  type DetailOptions,
  detailsChange,
  durationDefault,
  limitChange,
  type LimitOptions,
  type ResolveEnd,
  withDetails,
  withSecret,
} from '../options.ts'
import type { CommandResult } from '../output/print.ts'
import {
  lostKey,
  makeSecret,
  type NewSecret,
  type SecretOptions,
  withSecretWriter,
} from '../output/secrets.ts'
import { formatDetails, formatLimits, formatQuotas, formatTime, printable } from '../output/text.ts'
import { confirm, isInteractive } from '../prompt.ts'
import { timeOf } from '../store/open.ts'
import { defineImport } from './import.ts'
import { defineList } from './list.ts'
import { keptNotes, type RelatedKey, relativesJson, withRelatives } from './relatives.ts'
import { changeSelected, inParts, type SelectionOptions, selectsKeys } from './selection.ts'

/** The options of the commands for keys; each has some of them. */
interface Options extends SecretOptions, LimitOptions, DetailOptions, LinkOptions {
  readonly name?: string
  readonly scope?: readonly string[]
  readonly test?: true
  readonly expires?: ResolveEnd
  readonly never?: true
  readonly allow?: readonly string[]
  readonly clearAllow?: true
  readonly overlap: number
  readonly yes?: true
  readonly dryRun?: true
}

type BulkOptions = Omit<Options, 'scope' | 'tag'> & SelectionOptions

const endForms = 'End: a duration (90d), a date (end of the day, UTC) or an RFC 3339 instant'

/** The end of the sentence about a change without `--wait`. */
const stalenessNote = ': running servers refuse it within their max staleness (1 s by default).'

const details = ['owner', 'tag'] as const

export function define(keys: CliCommand): void {
  const issue = keys.subcommand('issue <partner>', 'Issue a key for a partner, and print it once')
    .requiredOption('--name <name>', 'Purpose of the key')
    .option('--scope <scope...>', 'Scopes of the key (default: all that active modules need)')
    .option('--test', 'Make a test key: its signups are stored as tests and never counted')
    .option('--expires <when>', `${endForms} (default: never)`)
    .option('--allow <cidr...>', 'Address ranges that may use the key (default: all)')
    .option('--limit <policy=quota/seconds>', 'Override a limit (repeatable)')
  withSecret(withClaim(withDetails(issue, details, false)), 'key or the link')
    .change(issueKey)
    .details(`
The key is a secret. The store keeps only its digest, so a lost key cannot be recovered; issue another one. --out never
overwrites a file; with it, the output of --json has the file name as out instead of the key. With --claim, the key is made, and shown, when the link is used.`)
    .examples(
      'partner-api keys issue acme --name "WordPress plugin"',
      'partner-api keys issue acme --name "WordPress plugin" --out acme.key',
      'partner-api keys issue acme --name CI --test --expires 90d --scope read:profiles --allow 192.0.2.0/24',
      'partner-api keys issue acme --name Shop --claim 24h --public-url https://api.acme.example',
      'partner-api keys issue acme --name Shop --owner "Web team" --tag shop eu',
      'partner-api keys issue acme --name dashboard --quiet | secret-manager store acme-key',
    )

  defineImport(keys)
  defineList(keys)

  keys.subcommand('show <key>', 'Show one key')
    .read(async (store, _invocation, id: string) => {
      const { key, partner } = await findKey(store, id)
      const now = timeOf(store)
      const quotas = key.environment === 'live' ? await readQuotaUse(store, partner, now) : []
      const [related] = await withRelatives(store, [key])
      return {
        data: { ...keyJson(key, now), quotas, ...relativesJson(related!, now) },
        text: formatDetails([...keyDetails(key, now, related), ['quotas', formatQuotas(quotas)]]),
      }
    })
    .details(`
Names the key that it has replaced, and the one that replaces it, each with its last use. Uses are recorded once a minute,
seconds late. To end an old key before its overlap does, use keys revoke; its --dry-run shows recent requests.`)
    .examples('partner-api keys show Zt81mQv04KsD')

  const rotate = keys
    .subcommand(
      'rotate [key]',
      'Replace a key, or many, with successors that have the same permissions, and print each once',
    )
    .addOption(
      durationDefault(
        '--overlap',
        'How long the old key keeps working; 0 ends it immediately',
        DEFAULT_OVERLAP_MS,
      ),
    )
    .option('--expires <when>', `${endForms}, of the successor (default: as the old key)`)
  withSecret(withClaim(selectsKeys(rotate)), 'key or the link')
    .change(rotateKey)
    .dryRuns()
    .details(`
The successor has the name, scopes, address ranges, limits, owner, tags and expiry of the old key. If a key may have
leaked, rotate it with --overlap 0, which ends it immediately. With --claim, the successor is made, and the overlap
begins, when the link is used.

Of many keys, each line is OLD_ID NEW_ID KEY. After an interruption, repeat the command: it skips what it has rotated. The
last successor may not have been printed: audit list --limit 2 shows it, and keys rotate NEW_ID --overlap 0 replaces it.`)
    .examples(
      'partner-api keys rotate Zt81mQv04KsD',
      'partner-api keys rotate Zt81mQv04KsD --overlap 7d --expires 90d',
      'partner-api keys rotate Zt81mQv04KsD --claim 7d --public-url https://api.acme.example',
      'partner-api keys rotate Zt81mQv04KsD --overlap 0 --quiet | secret-manager store acme-key',
      'partner-api keys rotate --partner acme --yes --out acme.keys',
    )

  defineUpdates(keys)
  defineStates(keys)
}

function defineStates(keys: CliCommand): void {
  defineState(
    keys.subcommand('disable [key]', 'Refuse a key, or many, until they are enabled again'),
    (id, { output }) => [`To undo this: ${output.command(`keys enable ${id}`)}`],
  ).dryRuns()
  defineState(keys.subcommand('enable [key]', 'Accept a disabled key, or many, again'), () => [])
  defineState(
    keys.subcommand('revoke [key]', 'Refuse a key, or many, permanently'),
    (_id, { wait }) => [`Revoked permanently${wait ? '.' : stalenessNote}`],
  ).dryRuns()
}

function defineUpdates(keys: CliCommand): void {
  const update = keys
    .subcommand(
      'update <key>',
      'Change the name, the address ranges, the expiry, the owner and the tags of a key',
    )
    .option('--name <name>', 'Purpose of the key')
    .option('--allow <cidr...>', 'Address ranges that may use the key, replacing the current ones')
    .option('--clear-allow', 'Allow all addresses')
    .option('--expires <when>', endForms)
    .option('--never', 'Remove the expiry')
  withDetails(update, details, true)
    .requiresChange()
    .change(updateKey)
    .dryRuns()
    .details(
      'Other members do not change; --tag replaces all tags. Expired and revoked keys cannot be updated, and --never does not undo a rotation.',
    )
    .examples(
      'partner-api keys update Zt81mQv04KsD --name "Shop plugin" --allow 192.0.2.0/24 2001:db8::/32',
      'partner-api keys update Zt81mQv04KsD --expires 2027-06-30',
    )

  keys.subcommand('limit <key>', 'Set and clear limits of a key')
    .option('--limit <policy=quota/seconds>', 'Set a limit; =0 for none (repeatable)')
    .option('--clear-limit <policy...>', 'Remove limits, so that the default applies')
    .requiresChange()
    .change(updateKey)
    .dryRuns()
    .details(
      "Other limits do not change. Without a limit of the key, its partner's applies, and then the service's.",
    )
    .examples(
      'partner-api keys limit Zt81mQv04KsD --limit key=1200/60 --limit signup=5/60',
      'partner-api keys limit Zt81mQv04KsD --clear-limit key',
    )
}

const stateChanges = { disable: disableChanges, enable: enableChanges, revoke: revocationChanges }

function defineState(
  command: CliCommand,
  notes: (id: string, invocation: Invocation) => readonly string[],
): CliCommand {
  const name = command.name() as 'disable' | 'enable' | 'revoke'
  const states = name === 'enable' ? [name, 'disabled'] as const : [name, 'active', 'retiring'] as const
  return selectsKeys(command)
    .change(async (store, invocation, id: string | undefined, options: BulkOptions) => {
      const { operator, io } = invocation
      const keys = createKeyAdministration(store, operator)
      if (id === undefined) {
        const { apply, now } = createAdministrator(store, operator)
        return await changeSelected(store, invocation, states, options, async function* (page, skip) {
          const changeAll = async (part: readonly Key[]) => {
            let changed: string[] = []
            await apply(async () => {
              changed = []
              const changes: Change[] = []
              for (const { id } of part) {
                try {
                  const own = stateChanges[name](await findKey(store, id), now())
                  if (own.length > 0) changed.push(id)
                  changes.push(...own)
                } catch (error) {
                  skip(id)(error)
                }
              }
              return changes
            })
            return changed
          }
          for await (const ids of inParts(page, skip, changeAll)) {
            for (const id of ids) {
              const key = await keys.show(id)
              const text = `${id} ${key.partner} ${printable(key.name)}\n`
              yield { data: keyJson(key, timeOf(store)), text }
            }
          }
        })
      }
      // Without a terminal it does not ask: scripts revoke keys in emergencies.
      if (name === 'revoke' && !options.yes && !options.dryRun && isInteractive(io)) {
        const key = await keys.show(id)
        const consequence = `This revokes key ${id} (${printable(key.name)}) of ${key.partner} permanently.`
        await confirm(io, consequence, id)
      }
      return { ...keyResult(store, await keys[name](id)), notes: () => notes(id, invocation) }
    })
    .examples(`partner-api keys ${name} Zt81mQv04KsD`, `partner-api keys ${name} --tag shop --yes`)
}

const issueKey: StoreAction<[string, Options & { readonly name: string }]> = (
  store,
  invocation,
  partner,
  { name, scope: scopes, test, expires, allow = [], limit: limits = {}, ...options },
) =>
  makeSecret(invocation, options, async () => {
    const { now, keys } = administerKeys(store, invocation)
    const environment: Environment = test ? 'test' : 'live'
    const permissions = { allow, limits, ...(scopes && { scopes }), ...detailsChange(options) }
    const expiresAt = expires?.(now)
    const request = { partner, name, environment, expiresAt, ...permissions }
    const advice = `To activate one: ${invocation.output.command(`modules activate ${partner} …`)}`
    const note = `The key has no scopes, because ${partner} has no active module. ${advice}`
    if (options.claim !== undefined) return await newLink(store, invocation, request, options, note)
    const { key, text } = await keys.issue(request)
    return newKey(store, key, text, key.scopes.length > 0 ? [] : [note])
  })

type Rotate = StoreAction<[string | undefined, BulkOptions], CommandResult | void>
const rotateKey: Rotate = async (store, invocation, id, options) => {
  if (id === undefined) return await rotateSelected(store, invocation, options)
  const { overlap: overlapMs, expires, claim, dryRun } = options
  const { now, keys } = administerKeys(store, invocation)
  const request = { overlapMs, expiresAt: expires?.(now) }
  const make = async () => {
    if (claim !== undefined) return await newLink(store, invocation, { rotates: id, ...request }, options)
    const { key, text, retiresAt } = await keys.rotate(id, request)
    const ended = `Key ${id} no longer works${invocation.wait ? '.' : stalenessNote}`
    const note = overlapMs === 0 ? ended : `Key ${id} works until ${formatTime(retiresAt)}.`
    return newKey(store, key, text, [note])
  }
  // A dry run prints no key.
  return dryRun ? (await make()).toResult('key', '') : await makeSecret(invocation, options, make)
}

const rotateSelected: StoreAction<[BulkOptions], void> = async (store, invocation, options) => {
  const { overlap: overlapMs, expires, claim, out, quiet, partner, dryRun } = options
  if (claim !== undefined) throw usageError('--claim makes a link for one key: pass its id.')
  const keys = createKeyAdministration(store, invocation.operator)
  const now = timeOf(store)
  // The command can be repeated: what it has made is not rotated again.
  const successors = new Set<string>()
  for await (const { successorId, retiresAt = 0 } of readKeys(store, { partner })) {
    if (successorId !== undefined && retiresAt > now - MS_PER_DAY) successors.add(successorId)
  }
  await withSecretWriter(
    invocation.io.stdout,
    dryRun ? undefined : out,
    (writer) =>
      changeSelected(store, invocation, ['rotate', 'active'], options, async function* (page, skip) {
        for (const old of page) {
          const { id } = old
          if (!dryRun) writer.check()
          const rotate = () => keys.rotate(id, { overlapMs, expiresAt: expires?.(now) })
          for await (const { key, text } of inParts([old], skip, rotate)) {
            if (!dryRun) successors.add(key.id)
            const line = quiet ? text : `${id} ${key.id} ${text}`
            const { data, lost } = await writer.write(newKey(store, key, text, []), line)
            const shown = out === undefined ? line : `${id} ${key.id}`
            yield { data: { old_id: id, ...data as object }, text: `${shown}\n`, lost }
          }
        }
      }, ({ id }) => successors.has(id)),
  )
}

/** `update` and `limit`. */
const updateKey: StoreAction<[string, Options]> = async (store, invocation, id, options) => {
  const { name, allow, clearAllow, expires, never } = options
  const { now, keys } = administerKeys(store, invocation)
  const expiresAt = never ? null : expires?.(now)
  const change = { name, expiresAt, limits: limitChange(options), ...detailsChange(options) }
  const key = await keys.update(id, { ...change, allow: clearAllow ? [] : allow })
  const rights = rightsOptions(options, expiresAt)
  const command = options.limit || options.clearLimit ? 'limit' : 'update'
  const notes = rights.length === 0
    ? []
    : await keptNotes(store, invocation, key, (id) => ['keys', command, id, ...rights])
  return { ...keyResult(store, key), notes: () => notes }
}

/** The options that change what a key may do, with the end as an instant. */
function rightsOptions(
  { allow, limit = {}, clearLimit = [] }: Options,
  expiresAt: number | null | undefined,
): string[] {
  const words: string[] = []
  if (allow) words.push('--allow', ...allow)
  if (expiresAt) words.push('--expires', rfc3339(expiresAt))
  for (const [name, value] of Object.entries(limit)) words.push('--limit', formatLimits({ [name]: value }))
  if (clearLimit.length > 0) words.push('--clear-limit', ...clearLimit)
  return words
}

/** All instants of one command are the same, so that durations count from it exactly. */
function administerKeys(store: Store, { operator }: Invocation) {
  const now = timeOf(store)
  return { now, keys: createKeyAdministration(store, { ...operator, clock: () => now }) }
}

function keyResult(store: Store, key: Key): CommandResult {
  const now = timeOf(store)
  return { data: keyJson(key, now), text: formatDetails(keyDetails(key, now)) }
}

function newKey(store: Store, key: Key, secret: string, notes: readonly string[]): NewSecret {
  const now = timeOf(store)
  const { id, ...rest } = keyJson(key, now)
  return {
    kind: 'key',
    secret,
    lost: lostKey(key.id),
    toResult: (name, value) => ({
      data: { id, [name]: value, ...rest },
      text: formatDetails([[name, value], ...keyDetails(key, now)]),
      notes: () => notes,
    }),
  }
}

/** @param related With the last use of its predecessor and its successor. */
function keyDetails(
  key: Key,
  now: number,
  related?: RelatedKey,
): (readonly [name: string, value: string | undefined])[] {
  const kind: string[] = [key.environment]
  if (key.digest.length > 64) kind.push('imported')
  if (key.hint) kind.push(`ends in ${key.hint}`)
  const until = key.state === 'revoked' ? '' : `, until ${formatTime(key.retiresAt)}`
  const lastUse = (relative: Key | undefined) =>
    relative === undefined ? '' : `, last used: ${formatTime(relative.lastUsedAt)}`
  const { predecessorId, successorId } = key
  return [
    ['id', key.id],
    ['partner', key.partner],
    ['name', key.name],
    ['kind', kind.join(', ')],
    ['state', keyState(key, now)],
    ['scopes', key.scopes.join(' ') || 'none'],
    ['allowed from', key.allow.join(' ') || 'anywhere'],
    ['limits', formatLimits(key.limits)],
    ['owner', key.owner],
    ['tags', key.tags.join(' ')],
    ['created', formatTime(key.createdAt)],
    ['expires', formatTime(key.expiresAt)],
    ['predecessor', predecessorId && predecessorId + lastUse(related?.predecessor)],
    ['successor', successorId && successorId + until + lastUse(related?.successor)],
    ['last used', formatTime(key.lastUsedAt)],
  ]
}
