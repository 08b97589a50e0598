/** What a restore undoes: the differences from the store that it replaced, as the commands that repeat them. */
import { createAdministrator, disableWebhooks, readModules, revokeClaims } from '../../core/admin/apply.ts'
import { formatDuration } from '../../core/admin/validate.ts'
import { hasEnded } from '../../core/keys/lifecycle.ts'
import { rfc3339 } from '../../core/lib/time.ts'
import type { Key, LimitOverrides, Module, ModuleDefinition, Modules, Partner } from '../../core/model.ts'
import type { AuditEntry, AuditLog } from '../../core/ports/audit.ts'
import type { Administration } from '../../core/ports/changes.ts'
import type { Signup } from '../../core/ports/signups.ts'
import { readKeys, readPages, readPartners, type Store } from '../../core/ports/store.ts'
import type { Webhook } from '../../core/ports/webhooks.ts'
import type { Invocation } from '../command.ts'
import type { Output } from '../output/print.ts'
import { formatLimits, pluralize, printable, shellQuote } from '../output/text.ts'

type Records =
  & Administration
  & AuditLog
  & Pick<Store, 'revision' | 'findKey' | 'listModules' | 'listSignups' | 'webhooks'>

type Words = readonly string[]

/**
 * Disables the webhooks and revokes the open claims of a restored store, and finds what the restore undoes.
 *
 * @param replaced `undefined` if there was no store, or it cannot be read.
 */
export async function reconcile(
  { actor, output }: Invocation,
  restored: Records,
  replaced: Records | undefined,
  now: number,
) {
  const undone = replaced ? await readUndone(output, restored, replaced, now).catch(() => null) : null
  // Some may have been removed since the backup, and some links used.
  const disabled = await disableWebhooks(restored, { actor, at: now })
  const { apply } = createAdministrator(restored, { actor, clock: () => now })
  const revoked = await apply(() => revokeClaims(restored, now))
  return { undone, disabled_webhooks: disabled, revoked_claims: revoked.length }
}

/**
 * Compares a restored store with the one that it replaces.
 *
 * @returns The last entry that both logs have, the number of those that follow in the replaced store, the commands that
 * give the restored one its state, in order, and the keys and webhooks that no command brings back; `null` when the stores
 * have no entry in common.
 */
async function readUndone(output: Output, restored: Records, replaced: Records, now: number) {
  const [start, end] = [await restored.auditHead(), await replaced.auditHead()]
  const after = await lastCommonEntry(restored, replaced, Math.min(start.sequence, end.sequence))
  if (after === 0 && start.sequence > 0) return null
  const [lost, first, keys, last]: [string[], Words[], Words[], Words[]] = [[], [], [], []]
  /** Modules that have to be active while scopes are granted, by partner. */
  const needed = new Map<string, Module[]>()
  const [modulesBefore, modules] = [await readModules(restored), await readModules(replaced)]
  const forgotten = listOthers(modulesBefore, modules)
  for await (const key of readKeys(replaced)) {
    const found = (await restored.findKey(key.id))?.key
    const before = found && { ...found, scopes: without(found.scopes, forgotten.map(({ scope }) => scope)) }
    const commands = before && keyCommands(before, key, now)
    if (commands === undefined) {
      if (!hasEnded(key, now)) lost.push(key.id)
    } else if (commands.length > 0 && (await replaced.findPartner(key.partner))?.state !== 'removed') {
      keys.push(...commands)
      const granted = without(key.scopes, before!.scopes).flatMap((scope) => modules.moduleFor(scope) ?? [])
      needed.set(key.partner, [...needed.get(key.partner) ?? [], ...granted])
    }
  }
  for await (const partner of readPartners(replaced)) {
    const { slug, modules: active, state } = partner
    const before = await restored.findPartner(slug)
    if (state === 'removed') {
      const details = before ? detailOptions(before, partner) : []
      first.push(
        ...command(details.length > 0, 'partners', 'update', slug, ...details),
        ...command(before !== undefined && before.state !== state, 'partners', 'remove', slug, '--yes'),
      )
      continue
    }
    const was = without(before?.modules ?? [], forgotten.map(({ name }) => name))
    const activated = [...new Set(without([...active, ...needed.get(slug) ?? []], was))]
    const deactivated = without([...was, ...activated], active)
    first.push(...partnerCommands(before, partner, activated))
    last.push(...command(deactivated.length > 0, 'modules', 'deactivate', slug, ...deactivated))
  }
  const [hooksBefore, hooks] = [await listWebhooks(restored), await listWebhooks(replaced)]
  lost.push(...without(hooks.map(({ id }) => id), hooksBefore.map(({ id }) => id)))
  const ofWebhooks = webhookCommands(replaced.webhooks ? hooksBefore : [], hooks)
  // A scope belongs to one module, and there is an end to their number: the old ones make room.
  const ofModules = [
    ...await forgetCommands(restored, forgotten, now),
    ...listOthers(modules, modulesBefore).map(defineCommand),
  ]
  const [was, max] = [await restored.maxKeyLifetimeMs(), await replaced.maxKeyLifetimeMs()]
  // Keys get their ends in between: what was allowed then may not be now.
  first.push(...command(was !== undefined && was !== max, 'store', 'update', '--no-max-key-lifetime'))
  if (max && max !== was) last.push(['store', 'update', '--max-key-lifetime', formatDuration(max)])
  const erased = await deleteCommands(restored, replaced, after)
  const commands = [...erased ?? [], ...ofWebhooks, ...ofModules, ...first, ...keys, ...last]
    .map((words) => output.command(words.map(shellQuote).join(' ')))
  return { after, entries: end.sequence - after, commands, lost, are_deletions_unknown: erased === undefined }
}

const idsPerCommand = 100

/**
 * The commands for signups that were deleted after the entry `after`. Entries do not name them: `undefined` when more are
 * missing than were deleted, as after the restore of an older backup.
 */
async function deleteCommands(
  restored: Records,
  replaced: Records,
  after: number,
): Promise<Words[] | undefined> {
  const entries = readPages<AuditEntry>((last, limit) => replaced.listAudit(last?.sequence ?? after, limit))
  let count = 0
  for await (const { type, before } of entries) {
    if (type === 'signups.deleted') count += JSON.parse(before!).signups
  }
  if (count === 0) return []
  const kept = new Set<string>()
  const left = readPages<Signup>((last, limit) => replaced.listSignups(undefined, last, limit))
  for await (const { id } of left) kept.add(id)
  const deleted: Pick<Signup, 'id' | 'createdAt'>[] = []
  let oldestKept: number | undefined
  // Newest first.
  for await (
    const signup of readPages<Signup>((last, limit) => restored.listSignups(undefined, last, limit))
  ) {
    const { id, createdAt } = signup
    if (kept.has(id)) oldestKept = createdAt
    else deleted.push({ id, createdAt })
  }
  if (deleted.length > count) return undefined
  const before = oldestKept ?? (deleted[0]?.createdAt ?? 0) + 1
  const newer = deleted.filter(({ createdAt }) => createdAt >= before).map(({ id }) => id)
  const chunks = Object.values(Object.groupBy(newer, (_, index) => Math.floor(index / idsPerCommand)))
  return [
    ...command(newer.length < deleted.length, 'signups', 'delete', '--before', rfc3339(before), '--yes'),
    ...chunks.map((ids) => ['signups', 'delete', ...ids!, '--yes']),
  ]
}

/** The last sequence, up to `end`, at which two logs are equal: the hash of an entry covers all before it. */
async function lastCommonEntry(a: Records, b: Records, end: number): Promise<number> {
  let [equal, different] = [0, end + 1]
  while (different - equal > 1) {
    const middle = Math.floor((equal + different) / 2)
    const [[one], [other]] = [await a.listAudit(middle - 1, 1), await b.listAudit(middle - 1, 1)]
    if (one !== undefined && one.hash === other?.hash) equal = middle
    else different = middle
  }
  return equal
}

/** @returns Commands that give a restored key the state of `key`; `undefined` when it has ended, and `key` has not. */
function keyCommands(before: Key, key: Key, now: number): Words[] | undefined {
  const { id, name, state, expiresAt, allow, scopes } = key
  if (state === 'revoked') return command(before.state !== state, 'keys', 'revoke', id)
  if (hasEnded(before, now)) return hasEnded(key, now) ? [] : undefined
  // An instant in the past is refused.
  if ((expiresAt ?? Infinity) <= now) return command(true, 'keys', 'update', id, '--expires', '1s')
  if (before.successorId !== undefined && state === 'retired') {
    return command(true, 'keys', 'revoke', id)
  }
  const expiry = expiresAt === undefined ? ['--never'] : ['--expires', rfc3339(expiresAt)]
  const addresses = allow.length > 0 ? ['--allow', ...allow] : ['--clear-allow']
  const updates = [
    ...name === before.name ? [] : [`--name=${name}`],
    ...expiresAt === before.expiresAt ? [] : expiry,
    ...allow.join() === before.allow.join() ? [] : addresses,
    ...detailOptions(before, key),
  ]
  const limits = limitOptions(before.limits, key.limits)
  const [removed, granted] = [without(before.scopes, scopes), without(scopes, before.scopes)]
  const isRotated = before.successorId === undefined && key.successorId !== undefined
  const isOver = hasEnded(key, now)
  const overlap = isOver ? '0' : `${Math.ceil((key.retiresAt! - now) / 1000)}s`
  const wasDisabled = before.state === 'disabled'
  return [
    ...command(updates.length > 0, 'keys', 'update', id, ...updates),
    ...command(limits.length > 0, 'keys', 'limit', id, ...limits),
    ...command(removed.length > 0, 'scopes', 'remove', id, ...removed),
    ...command(granted.length > 0, 'scopes', 'grant', id, ...granted),
    // A disabled key is not rotated. The successor has what the key has by now.
    ...command(wasDisabled && (isRotated || state !== 'disabled'), 'keys', 'enable', id),
    ...command(isRotated, 'keys', 'rotate', id, '--overlap', overlap),
    ...command(state === 'disabled' && !isOver && (isRotated || !wasDisabled), 'keys', 'disable', id),
  ]
}

/** The commands for a partner that is not removed, but for deactivations of modules: these come after those of keys. */
function partnerCommands(
  before: Partner | undefined,
  partner: Partner,
  activated: readonly Module[],
): Words[] {
  const { slug, name, limits, state } = partner
  const was = before ?? { name, limits: {}, state: 'active' }
  const updates = [
    ...name === was.name ? [] : [`--name=${name}`],
    ...limitOptions(was.limits, limits),
    ...detailOptions(before ?? {}, partner),
  ]
  return [
    ...command(before === undefined, 'partners', 'create', slug, `--name=${name}`),
    ...command(updates.length > 0, 'partners', 'update', slug, ...updates),
    ...command(activated.length > 0, 'modules', 'activate', slug, ...activated),
    ...command(state !== was.state, 'partners', state === 'suspended' ? 'suspend' : 'resume', slug),
  ]
}

/** The commands for restored webhooks, all of which start disabled. */
function webhookCommands(before: readonly Webhook[], webhooks: readonly Webhook[]): Words[] {
  const current = new Map(webhooks.map((webhook) => [webhook.id, webhook]))
  return before.flatMap((was) => {
    const { id } = was
    const webhook = current.get(id)
    if (webhook === undefined) return command(true, 'webhooks', 'remove', id, '--yes')
    const { url, events, secrets, state } = webhook
    const isChanged = url !== was.url || events.join() !== was.events.join()
    const isNewSecret = secrets[0]!.sealed !== was.secrets[0]!.sealed
    return [
      ...command(isChanged, 'webhooks', 'update', id, '--url', url, '--event', ...events, '--allow-private'),
      ...command(isNewSecret, 'webhooks', 'rotate-secret', id, '--overlap', '0'),
      ...command(state === 'active', 'webhooks', 'enable', id),
    ]
  })
}

async function listWebhooks({ webhooks }: Records): Promise<readonly Webhook[]> {
  return await webhooks?.listWebhooks() ?? []
}

function limitOptions(before: LimitOverrides, limits: LimitOverrides): string[] {
  const [old, current] = [before, limits].map((each) =>
    Object.entries(each).map(([policy, limit]) => formatLimits({ [policy]: limit }))
  )
  const cleared = without(Object.keys(before), Object.keys(limits))
  const set = without(current!, old!).flatMap((limit) => ['--limit', limit])
  return cleared.length > 0 ? [...set, '--clear-limit', ...cleared] : set
}

/** The modules of a list that another has not, with the same scope and feature. */
function listOthers({ list }: Modules, { list: others }: Modules): readonly ModuleDefinition[] {
  const known = others.map((module) => defineCommand(module).join())
  return list.filter((module) => !known.includes(defineCommand(module).join()))
}

/** The commands that forget modules, which no partner may have active and no key in force may hold. */
async function forgetCommands(store: Records, forgotten: readonly ModuleDefinition[], now: number) {
  if (forgotten.length === 0) return []
  const commands: Words[] = []
  for await (const { slug, state, modules } of readPartners(store)) {
    const active = modules.filter((module) =>
      state !== 'removed' && forgotten.some(({ name }) => name === module)
    )
    commands.push(...command(active.length > 0, 'modules', 'deactivate', slug, ...active))
  }
  for await (const key of readKeys(store)) {
    const held = key.scopes.filter((each) => forgotten.some(({ scope }) => scope === each))
    const isInForce = key.state !== 'disabled' && !hasEnded(key, now)
    commands.push(...command(isInForce && held.length > 0, 'scopes', 'remove', key.id, ...held))
  }
  return [...commands, ...forgotten.map(({ name }) => ['modules', 'forget', name])]
}

const details = ['owner', 'contact', 'tags', 'externalId', 'note', 'selfService'] as const
type Details = { readonly [Name in (typeof details)[number]]?: string | readonly string[] | undefined }

function detailOptions(before: Details, after: Details): string[] {
  return details.flatMap((name) => {
    const [was = '', value = ''] = [before[name], after[name]]
    const option = name === 'tags' ? 'tag' : name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    if (String(was) === String(value)) return []
    if (value.length === 0) return [`--no-${option}`]
    return typeof value === 'string' ? [`--${option}=${value}`] : [`--${option}`, ...value]
  })
}

function defineCommand({ name, scope, feature }: ModuleDefinition): Words {
  return ['modules', 'define', name, '--scope', scope, `--feature=${feature}`]
}

function command(isNeeded: boolean, ...words: string[]): Words[] {
  return isNeeded ? [words] : []
}

function without<T>(values: readonly T[], others: readonly T[]): T[] {
  return values.filter((value) => !others.includes(value))
}

/** @param store The URL of the replaced store; `undefined` if there was none. */
export function printUndone(
  output: Output,
  store: string | undefined,
  { undone, disabled_webhooks: disabled, revoked_claims: revoked }: Awaited<ReturnType<typeof reconcile>>,
): void {
  if (disabled.length > 0) {
    output.note(`warning: Webhooks start disabled, until you run webhooks enable: ${disabled.join(' ')}`)
  }
  if (revoked > 0) {
    output.note(`warning: The restore revoked ${pluralize(revoked, 'open link')}: make others.`)
  }
  if (store === undefined) return
  if (undone === null) {
    const reason = `${store} cannot be read, or has no entry in common with the backup`
    return output.note(`warning: ${reason}: the changes that the restore undoes are unknown.`)
  }
  const { after, entries, commands, lost, are_deletions_unknown: areDeletionsUnknown } = undone
  const list = `partner-api --store ${shellQuote(store)} audit list --after ${after}`
  output.note(`${pluralize(entries, 'change')} since the backup, and all signups since: ${list}`)
  if (lost.length > 0) {
    output.note(`warning: Keys and webhooks that no command can restore: ${printable(lost.join(' '))}`)
  }
  if (areDeletionsUnknown) {
    output.note(
      'warning: Signups were deleted since the backup. Which is unknown, as others are missing, too: delete them again.',
    )
  }
  if (commands.length === 0) return
  output.note(
    'warning: The restore undoes these changes. To make them again, run these commands in order before you serve the store:',
  )
  for (const command of commands) output.note(printable(command))
}
