import { type Command, Option } from 'commander'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { keyState } from '../../core/keys/lifecycle.ts'
import type { LimitOverrides, Partner } from '../../core/model.ts'
import { MODULE_NAMES } from '../../core/policy/modules.ts'
import { action, addWaitOption, changeStore, type CommandResult, type WaitOptions } from '../command.ts'
import { usageError } from '../errors.ts'
import type { Invocation } from '../invocation.ts'
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

interface CreateOptions extends WaitOptions {
  readonly name: string
  readonly module?: readonly string[]
  readonly limit?: LimitOverrides
}

/** `partners create`, `list`, `show`, `update`, `suspend`, `resume` and `remove`. */
export function define(partners: Command): void {
  addWaitOption(addLimitOption(
    partners.command('create')
      .description('Create a partner')
      .argument('<slug>', '1–80 of a-z, 0-9 and -, a letter or digit first; never changes')
      .requiredOption('--name <name>', 'What people call the partner')
      .addOption(
        new Option('--module <module...>', 'Modules that are active from the start').choices(MODULE_NAMES),
      ),
  ))
    .addHelpText(
      'after',
      `
Examples:
  $ partner-api partners create acme --name "Acme Travel"
  $ partner-api partners create acme --name "Acme Travel" --module profiles countries --limit key=1200/60`,
    )
    .action(action(create))

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
    .argument('<slug>', "The partner's slug")
    .addHelpText('after', '\nExample:\n  $ partner-api partners show acme')
    .action(action(show))

  addWaitOption(
    addLimitOptions(
      partners.command('update')
        .description('Rename a partner, and set or clear limits of its own')
        .argument('<slug>', "The partner's slug")
        .option('--name <name>', 'What people call the partner from now on'),
    ),
  )
    .addHelpText(
      'after',
      `
Limits that are not named stay. A key's own limits count before its partner's.

Examples:
  $ partner-api partners update acme --name "Acme Journeys"
  $ partner-api partners update acme --limit key=1200/60 --limit signup=100/3600
  $ partner-api partners update acme --clear-limit key signup`,
    )
    .action(action(update))

  addStateCommand(
    partners,
    'suspend',
    'Refuse everything that the partner asks, until it is resumed',
    (slug) => `Suspended: running servers refuse ${slug} within their max staleness (1 s by default).`,
  )
  addStateCommand(
    partners,
    'resume',
    'Let a suspended partner in again',
  )

  addWaitOption(
    partners.command('remove')
      .description('End a partner for good: its keys are revoked, its records stay, its slug stays taken')
      .argument('<slug>', "The partner's slug")
      .option('-y, --yes', 'Do not ask, as a script has to'),
  )
    .addHelpText(
      'after',
      `
To refuse a partner for a while only: partner-api partners suspend SLUG

Examples:
  $ partner-api partners remove acme
  $ partner-api partners remove acme --yes --json`,
    )
    .action(action(remove))
}

/** @param note How servers follow, for who does not wait until they have. */
function addStateCommand(
  partners: Command,
  name: 'suspend' | 'resume',
  description: string,
  note?: (slug: string) => string,
): void {
  addWaitOption(
    partners.command(name)
      .description(description)
      .argument('<slug>', "The partner's slug"),
  )
    .addHelpText('after', `\nExample:\n  $ partner-api partners ${name} acme`)
    .action(
      action((invocation, slug: string, options: WaitOptions) =>
        changeStore(invocation, {}, options, async (store) => {
          const partner = await createPartnerAdministration(store, invocation)[name](slug)
          return { ...partnerResult(partner), notes: () => note && !options.wait ? [note(partner.slug)] : [] }
        })
      ),
    )
}

function create(invocation: Invocation, slug: string, options: CreateOptions): Promise<void> {
  return changeStore(invocation, { create: true }, options, async (store) => {
    const partner = await createPartnerAdministration(store, invocation).create({
      slug,
      name: options.name,
      modules: options.module ?? [],
      limits: options.limit ?? {},
    })
    const next = partner.modules.length > 0
      ? `Next: partner-api keys issue ${slug} --name "What the key is for"`
      : `Next: partner-api modules activate ${slug} profiles …`
    return { ...partnerResult(partner), notes: () => [next] }
  })
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
    throw usageError('What is to be changed? --name, --limit and --clear-limit say it.')
  }
  await changeStore(
    invocation,
    {},
    options,
    async (store) =>
      partnerResult(await createPartnerAdministration(store, invocation).update(slug, { name, limits })),
  )
}

function remove(
  invocation: Invocation,
  slug: string,
  options: WaitOptions & { readonly yes?: true },
): Promise<void> {
  return changeStore(invocation, {}, options, async (store) => {
    const partners = createPartnerAdministration(store, invocation)
    const { name } = await partners.show(slug)
    const now = timeOf(store)
    let working = 0
    for await (const key of createKeyAdministration(store, invocation).list(slug)) {
      if (!['revoked', 'expired'].includes(keyState(key, now))) working++
    }
    if (!options.yes) {
      await confirm(
        `Partner ${slug} (${printable(name)}) will be removed, and ${pluralizeKeys(working)} revoked.`,
        slug,
      )
    }
    const removed = await partners.remove(slug)
    const note = `Removed, and ${pluralizeKeys(working)} revoked. Its records stay, and its slug stays taken.`
    return { ...partnerResult(removed), notes: () => [note] }
  })
}

function pluralizeKeys(count: number): string {
  return count === 0 ? 'no key' : pluralize(count, 'key')
}

function list(invocation: Invocation): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const addRows = createTableFormatter(['slug', 'name', 'state', 'modules'])
    const { last } = await printList(invocation, createPartnerAdministration(store, invocation).list(), {
      toJson: partnerJson,
      text: (partners) =>
        addRows(
          partners.map(({ slug, name, state, modules }) => [slug, name, state, modules.join(' ') || '–']),
        ),
    })
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
