import { type Command, Option } from 'commander'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { keyState } from '../../core/keys/lifecycle.ts'
import type { LimitOverrides, Partner } from '../../core/model.ts'
import { MODULE_NAMES } from '../../core/policy/modules.ts'
import type { Store } from '../../core/ports/store.ts'
import {
  action,
  addWaitOption,
  changeStore,
  type CommandResult,
  type Invocation,
  setChangeAction,
  type WaitOptions,
} from '../command.ts'
import { usageError } from '../errors.ts'
import { addLimitOption, addLimitOptions, limitChange, type LimitOptions } from '../options.ts'
import { partnerJson } from '../output/json.ts'
import { printList, printNote, printResult } from '../output/print.ts'
import {
  createTableFormatter,
  formatDetails,
  formatLimits,
  formatTime,
  pluralize,
  printable,
} from '../output/text.ts'
import { confirm } from '../prompt.ts'
import { timeOf, withStore } from '../store.ts'

/** `partners create`, `list`, `show`, `update`, `suspend`, `resume` and `remove`. */
export function define(partners: Command): void {
  const createCommand = addLimitOption(
    partners.command('create')
      .description('Create a partner')
      .argument('<slug>', '1–80 of a-z, 0-9 and -, a letter or digit first; never changes')
      .requiredOption('--name <name>', 'Display name of the partner')
      .addOption(new Option('--module <module...>', 'Modules to activate').choices(MODULE_NAMES)),
  )
    .addHelpText(
      'after',
      `
Examples:
  $ partner-api partners create acme --name "Acme Travel"
  $ partner-api partners create acme --name "Acme Travel" --module profiles countries --limit key=1200/60`,
    )
  setChangeAction(createCommand, create, { create: true })

  partners.command('list')
    .description('List all partners')
    .addHelpText(
      'after',
      `
Examples:
  $ partner-api partners list
  $ partner-api partners list --json | jq -r '.data[].slug'`,
    )
    .action(action(list))

  partners.command('show')
    .description('Show one partner')
    .argument('<slug>', slugHelp)
    .addHelpText('after', '\nExample:\n  $ partner-api partners show acme')
    .action(action(show))

  addWaitOption(
    addLimitOptions(
      partners.command('update')
        .description('Rename a partner, and set or clear its limits')
        .argument('<slug>', slugHelp)
        .option('--name <name>', 'New display name of the partner'),
    ),
  )
    .addHelpText(
      'after',
      `
Other limits do not change. The limits of a key take precedence over those of its partner.

Examples:
  $ partner-api partners update acme --name "Acme Journeys"
  $ partner-api partners update acme --limit key=1200/60 --limit signup=100/3600
  $ partner-api partners update acme --clear-limit key signup`,
    )
    .action(action(update))

  addStateCommand(
    partners,
    'suspend',
    'Refuse all requests of a partner until it is resumed',
    (slug) => `Suspended: running servers refuse ${slug} within their max staleness (1 s by default).`,
  )
  addStateCommand(partners, 'resume', 'Accept requests of a suspended partner again')

  const removeCommand = partners.command('remove')
    .description('Remove a partner: revokes its keys, and keeps its records and its slug')
    .argument('<slug>', slugHelp)
    .option('-y, --yes', 'Do not ask for confirmation')
    .addHelpText(
      'after',
      `
This cannot be undone. To refuse a partner temporarily: partner-api partners suspend SLUG

Examples:
  $ partner-api partners remove acme
  $ partner-api partners remove acme --yes --json`,
    )
  setChangeAction(removeCommand, remove)
}

const slugHelp = "The partner's slug"

/** @param note Printed without `--wait`. */
function addStateCommand(
  partners: Command,
  name: 'suspend' | 'resume',
  description: string,
  note?: (slug: string) => string,
): void {
  const command = partners.command(name)
    .description(description)
    .argument('<slug>', slugHelp)
    .addHelpText('after', `\nExample:\n  $ partner-api partners ${name} acme`)
  setChangeAction(command, async (store, invocation, slug: string, { wait }: WaitOptions) => {
    const partner = await createPartnerAdministration(store, invocation)[name](slug)
    return { ...partnerResult(partner), notes: () => note && !wait ? [note(slug)] : [] }
  })
}

interface CreateOptions extends WaitOptions {
  readonly name: string
  readonly module?: readonly string[]
  readonly limit?: LimitOverrides
}

async function create(
  store: Store,
  invocation: Invocation,
  slug: string,
  { name, module: modules = [], limit: limits = {} }: CreateOptions,
): Promise<CommandResult> {
  const partners = createPartnerAdministration(store, invocation)
  const partner = await partners.create({ slug, name, modules, limits })
  const next = partner.modules.length > 0
    ? `Next: partner-api keys issue ${slug} --name "Purpose of the key"`
    : `Next: partner-api modules activate ${slug} profiles …`
  return { ...partnerResult(partner), notes: () => [next] }
}

function show(invocation: Invocation, slug: string): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const { data, text } = partnerResult(await createPartnerAdministration(store, invocation).show(slug))
    await printResult(invocation, data, text)
  })
}

async function update(
  invocation: Invocation,
  slug: string,
  { name, ...options }: LimitOptions & WaitOptions & { readonly name?: string },
): Promise<void> {
  const limits = limitChange(options)
  if (name === undefined && limits === undefined) {
    throw usageError('Nothing to change: pass --name, --limit or --clear-limit.')
  }
  await changeStore(
    invocation,
    {},
    options,
    async (store) =>
      partnerResult(await createPartnerAdministration(store, invocation).update(slug, { name, limits })),
  )
}

async function remove(
  store: Store,
  invocation: Invocation,
  slug: string,
  { yes }: WaitOptions & { readonly yes?: true },
): Promise<CommandResult> {
  const partners = createPartnerAdministration(store, invocation)
  const { name } = await partners.show(slug)
  const now = timeOf(store)
  let count = 0
  for await (const key of createKeyAdministration(store, invocation).list(slug)) {
    if (!['revoked', 'expired'].includes(keyState(key, now))) count++
  }
  const keys = count === 0 ? 'no key' : pluralize(count, 'key')
  if (!yes) await confirm(`This removes partner ${slug} (${printable(name)}) and revokes ${keys}.`, slug)
  const removed = await partners.remove(slug)
  const note = `Removed the partner and revoked ${keys}. Its records are kept, and its slug stays taken.`
  return { ...partnerResult(removed), notes: () => [note] }
}

function list(invocation: Invocation): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const addRows = createTableFormatter(['slug', 'name', 'state', 'modules'])
    const partners = createPartnerAdministration(store, invocation).list()
    const { last } = await printList(
      invocation,
      partners,
      partnerJson,
      (rows) =>
        addRows(rows.map(({ slug, name, state, modules }) => [slug, name, state, modules.join(' ') || '–'])),
    )
    if (last === undefined) {
      printNote('There are no partners yet. To create one: partner-api partners create SLUG --name NAME')
    }
  })
}

function partnerResult(partner: Partner): CommandResult {
  return {
    data: partnerJson(partner),
    text: formatDetails([
      ['partner', partner.slug],
      ['name', partner.name],
      ['state', partner.state],
      ['modules', partner.modules.join(' ') || 'none'],
      ['limits', formatLimits(partner.limits)],
      ['created', formatTime(partner.createdAt)],
    ]),
  }
}
