import { findPartner } from '../../core/admin/apply.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { type QuotaUse, readQuotaUse } from '../../core/limits/partner-quotas.ts'
import { readKeys, type Store } from '../../core/ports/store.ts'
import { KEY_STATES, type Partner } from '../../core/model.ts'
import type { CliCommand, Invocation, StoreAction } from '../command.ts'
import {
  type DetailOptions,
  detailsChange,
  limitChange,
  type LimitOptions,
  type PageOptions,
  tagOption,
  withDetails,
  withPages,
} from '../options.ts'
import { partnerJson } from '../../core/admin/record-json.ts'
import type { CommandResult, Output } from '../output/print.ts'
import {
  formatDetails,
  formatLimits,
  formatQuotas,
  formatTime,
  pluralize,
  printable,
} from '../output/text.ts'
import { confirm } from '../prompt.ts'
import { timeOf } from '../store/open.ts'

/** The options of the commands for partners; each has some of them. */
interface Options extends LimitOptions, DetailOptions {
  readonly name?: string
  readonly module?: readonly string[]
  readonly yes?: true
  readonly dryRun?: true
}

const details = ['contact', 'tag', 'external-id', 'note', 'self-service'] as const

export function define(partners: CliCommand): void {
  const create = partners.subcommand('create', 'Create a partner')
    .argument('<slug>', '1–80 of a-z, 0-9 and -, a letter or digit first; cannot be changed later')
    .requiredOption('--name <name>', 'Display name of the partner')
    .option('--module <module...>', 'Modules to activate')
    .option('--limit <policy=quota>', 'Override a limit: POLICY=QUOTA/SECONDS or month=QUOTA (repeatable)')
  withDetails(create, details, false)
    .change(createPartner, { create: true })
    .examples(
      'partner-api partners create acme --name "Acme Travel"',
      'partner-api partners create acme --name "Acme Travel" --module profiles countries --limit key=1200/60',
      'partner-api partners create acme --name "Acme Travel" --contact dev@acme.example --tag travel eu',
    )

  withPages(partners.subcommand('list', 'List all partners, by slug'), 'slug')
    .option('--tag <tag>', 'Only partners with this tag', tagOption)
    .read(list)
    .examples(
      'partner-api partners list',
      'partner-api partners list --tag travel',
      "partner-api partners list --json | jq -r '.data[].slug'",
    )

  partners.subcommand('show <slug>', 'Show one partner')
    .read(async (store, _invocation, slug: string) => {
      const partner = await findPartner(store, slug)
      return partnerResult(partner, await readQuotaUse(store, partner, timeOf(store)))
    })
    .examples('partner-api partners show acme')

  const update = partners.subcommand(
    'update <slug>',
    'Change the name, the limits and the details of a partner',
  )
    .option('--name <name>', 'New display name of the partner')
    .option('--limit <policy=quota>', 'POLICY=QUOTA/SECONDS or month=QUOTA; =0 for none (repeatable)')
    .option('--clear-limit <limit...>', 'Remove limits, so that the default applies')
  withDetails(update, details, true)
    .requiresChange()
    .change(async (store, { operator }, slug: string, { name, ...options }: Options) => {
      const partners = createPartnerAdministration(store, operator)
      const change = { name, limits: limitChange(options), ...detailsChange(options) }
      return partnerResult(await partners.update(slug, change))
    })
    .dryRuns()
    .details(`
Other members do not change; --tag and --self-service replace all. The limits of a key take precedence over those of its
partner. Audit entries say that the contact or the note was changed, and have neither. Of a removed partner, --no-contact
and --no-note still remove them.`)
    .examples(
      'partner-api partners update acme --name "Acme Journeys"',
      'partner-api partners update acme --limit key=1200/60 --limit signup=100/3600',
      'partner-api partners update acme --clear-limit key signup',
      'partner-api partners update acme --contact dev@acme.example --self-service rotate revoke',
    )

  defineState(
    partners.subcommand('suspend <slug>', 'Refuse all requests of a partner until it is resumed'),
    (slug) => [`Suspended: running servers refuse ${slug} within their max staleness (1 s by default).`],
  ).dryRuns()
  defineState(partners.subcommand('resume <slug>', 'Accept requests of a suspended partner again'))

  partners
    .subcommand('remove <slug>', 'Remove a partner: revokes its keys, and keeps its records')
    .option('-y, --yes', 'Do not ask for confirmation')
    .change(remove)
    .dryRuns()
    .details('This cannot be undone. To refuse a partner temporarily: partner-api partners suspend SLUG')
    .examples('partner-api partners remove acme', 'partner-api partners remove acme --yes --json')
}

/** @param notes Printed without `--wait`. */
function defineState(command: CliCommand, notes?: (slug: string) => string[]): CliCommand {
  const name = command.name() as 'suspend' | 'resume'
  return command
    .change(async (store, { operator, wait }, slug: string) => {
      const partner = await createPartnerAdministration(store, operator)[name](slug)
      return { ...partnerResult(partner), notes: () => wait ? [] : notes?.(slug) ?? [] }
    })
    .examples(`partner-api partners ${name} acme`)
}

type NewOptions = Options & { readonly name: string }

async function createPartner(
  store: Store,
  { operator, output }: Invocation,
  slug: string,
  options: NewOptions,
) {
  const { name, module: modules = [], limit: limits = {} } = options
  const given = { slug, name, modules, limits, ...detailsChange(options) }
  const partner = await createPartnerAdministration(store, operator).create(given)
  const next = partner.modules.length > 0
    ? `keys issue ${slug} --name "Purpose of the key"`
    : `modules activate ${slug} profiles …`
  return { ...partnerResult(partner), notes: () => [`Next: ${output.command(next)}`] }
}

const remove: StoreAction<[string, Options]> = async (store, { operator, io }, slug, { yes, dryRun }) => {
  const { name } = await findPartner(store, slug)
  const states = KEY_STATES.filter((state) => !['revoked', 'expired'].includes(state))
  let count = 0
  for await (const _ of readKeys(store, { partner: slug, states, now: timeOf(store) })) count++
  const keys = count === 0 ? 'no key' : pluralize(count, 'key')
  const consequence = `This removes partner ${slug} (${printable(name)}) and revokes ${keys}.`
  if (!yes && !dryRun) await confirm(io, consequence, slug)
  const removed = await createPartnerAdministration(store, operator).remove(slug)
  const note =
    `Removed the partner and revoked ${keys}. Its records are kept, and its slug cannot be used again.`
  return { ...partnerResult(removed), notes: () => [note] }
}

type ListOptions = PageOptions<string> & { readonly tag?: string }

const list: StoreAction<[ListOptions], void> = async (store, { output }, { after, limit, tag }) => {
  await output.page<Partner>({
    read: (last, rows) => store.listPartners(last?.slug ?? after, rows, tag),
    toJson: partnerJson,
    headings: ['slug', 'name', 'state', 'modules', 'tags'],
    toCells: ({ slug, name, state, modules, tags }) => [
      slug,
      name,
      state,
      modules.join(' ') || '–',
      tags.join(' ') || '–',
    ],
    rows: 'partners',
    after: ({ slug }) => slug,
    none: noPartners(output, tag, after),
  }, limit)
}

function noPartners(output: Output, tag: string | undefined, after: string | undefined): string {
  if (tag !== undefined) return 'There are no such partners.'
  if (after !== undefined) return 'There are no more partners.'
  return `There are no partners yet. To create one: ${output.command('partners create SLUG --name NAME')}`
}

function partnerResult(partner: Partner, quotas?: readonly QuotaUse[]): CommandResult {
  return {
    data: quotas === undefined ? partnerJson(partner) : { ...partnerJson(partner), quotas },
    text: formatDetails([
      ['partner', partner.slug],
      ['name', partner.name],
      ['state', partner.state],
      ['modules', partner.modules.join(' ') || 'none'],
      ['limits', formatLimits(partner.limits)],
      ['quotas', formatQuotas(quotas ?? [])],
      ['contact', partner.contact],
      ['tags', partner.tags.join(' ')],
      ['external id', partner.externalId],
      ['note', partner.note],
      ['self-service', partner.selfService.join(' ')],
      ['created', formatTime(partner.createdAt)],
    ]),
  }
}
