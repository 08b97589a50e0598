import { Option } from 'commander'
import { isPublicUrl } from '../../adapters/webhooks/addresses.ts'
import {
  createWebhookAdministration,
  parseWebhookUrl,
  type WebhookAdministration,
  type WebhookAdministrationOptions,
  type WebhookWithSecret,
} from '../../adapters/webhooks/administration.ts'
import { openSecrets } from '../../adapters/webhooks/secrets.ts'
import { findPartner } from '../../core/admin/apply.ts'
import { DEFAULT_OVERLAP_MS } from '../../core/admin/rotation.ts'
import { deliveryJson, webhookJson } from '../../core/admin/record-json.ts'
import { requireNotRemoved } from '../../core/admin/validate.ts'
import { formatValue } from '../../core/http/redact.ts'
import { drawId } from '../../core/lib/ids.ts'
import { readRows, type Store } from '../../core/ports/store.ts'
import type { Delivery, Webhook, WebhookEventType } from '../../core/ports/webhooks.ts'
import { createEvent } from '../../core/webhooks/events.ts'
import type { CliCommand, Invocation, StoreAction } from '../command.ts'
import { CliError, usageError } from '../errors.ts'
import { durationDefault, integerBetween, optionParser, withSecret } from '../options.ts'
import type { CommandResult } from '../output/print.ts'
import { makeSecret, type SecretOptions } from '../output/secrets.ts'
import { formatDetails, formatTable, formatTime, pluralize, printable } from '../output/text.ts'
import { confirm } from '../prompt.ts'
import { timeOf } from '../store/open.ts'
import { requireWebhookKey, webhookKeyOption } from './encryption-key.ts'

/** The options of the commands for webhooks; each has some of them. */
interface Options extends SecretOptions {
  readonly url?: URL
  readonly event?: readonly WebhookEventType[]
  readonly partner?: string
  readonly allowPrivate?: boolean
  readonly webhookKeyFile?: string
  readonly overlap: number
  readonly yes?: true
  readonly dryRun?: true
  readonly state?: Delivery['state']
  readonly limit?: number
  readonly delivery: readonly string[]
}

const urlHelp = 'Where deliveries are sent'

export function define(webhooks: CliCommand): void {
  const command = (name: string, description: string, options = '') =>
    webhooks.subcommand(`${name} <webhook>`, description)
      .examples(`partner-api webhooks ${name} whk_0123456789ABCDEFGHJK${options}`)
  const allowPrivate = ['--allow-private', 'Allow private addresses and http://'] as const
  const dryRun = ['--dry-run', 'Change nothing; show what would not be sent'] as const
  const event = ['--event <type...>', 'Types of events'] as const

  const summary = 'Send events to a URL, and print its signing secret once'
  withSecret(webhooks.subcommand('create', summary).addOption(webhookKeyOption()), 'secret')
    .requiredOption('--url <url>', urlHelp, urlOption)
    .requiredOption(...event)
    .option('--partner <slug>', 'Only events about this partner (default: all)')
    .option(...allowPrivate)
    .read(create)
    .details(`
Deliveries are signed as in Standard Webhooks. The secret is stored encrypted with a key of 32 bytes in Base64, which
servers also need. To make one: (umask 077; openssl rand -base64 32 > webhook.key)`)
    .examples('partner-api webhooks create --url https://hooks.example --event signup.created --partner acme')

  webhooks.subcommand('list', 'List webhooks').read(list).examples('partner-api webhooks list')

  command('show', 'Show one webhook').read(async (store, invocation, id: string) =>
    toResult(await administer(store, invocation).show(id))
  )

  command('update', 'Change the URL and the events of a webhook', ' --event signup.created key.rotated')
    .option('--url <url>', urlHelp, urlOption)
    .option(...event)
    .requiresChange()
    .option(...allowPrivate)
    .read(update)

  command('enable', 'Deliver events for a disabled webhook again').read(enable)
  command('disable', 'Write and deliver no events for a webhook until it is enabled again')
    .option(...dryRun)
    .read(disable)

  command('remove', 'Remove a webhook and its deliveries', ' --yes')
    .option('-y, --yes', 'Do not ask for confirmation')
    .option(...dryRun)
    .read(remove)

  const rotation = command('rotate-secret', 'Replace the secret of a webhook, and print the new one once')
  const overlapHelp = 'How long deliveries are also signed with the old secret'
  withSecret(rotation.addOption(webhookKeyOption()), 'secret')
    .addOption(durationDefault('--overlap', overlapHelp, DEFAULT_OVERLAP_MS))
    .read(rotate)

  command('test', 'Send one delivery of the type webhook.test from this machine')
    .addOption(webhookKeyOption())
    .option(...allowPrivate)
    .read(sendTest)

  command('deliveries', 'List deliveries of a webhook, newest first')
    .addOption(
      new Option('--state <state>', 'Only deliveries in this state').choices([
        'pending',
        'delivered',
        'failed',
      ]),
    )
    .option('--limit <n>', 'Number of rows, 1 to 100000', integerBetween(1, 100_000))
    .read(listDeliveries)

  command('replay', 'Send deliveries of the last 30 days again', ' --delivery msg_0123456789ABCDEFGHJK')
    .requiredOption('--delivery <id...>', 'Ids of the deliveries, in any state')
    .read(replay)
}

const urlOption = optionParser(
  'It must be an https:// address of at most 2000 characters, without credentials and fragment.',
  parseWebhookUrl,
)

/** @throws {CliError} exit code 2 for an address that servers refuse. */
function toHref(url: URL, allowPrivate: boolean = false): string {
  if (allowPrivate || isPublicUrl(url)) return url.href
  throw usageError(
    'Deliveries are only sent to public addresses by https://. To allow others, pass --allow-private here and ' +
      '--allow-private-webhooks to serve.',
  )
}

function administer(
  store: Store,
  { operator }: Invocation,
  options: WebhookAdministrationOptions = {},
): WebhookAdministration {
  return createWebhookAdministration(store, operator, options)
}

async function previewEnd(store: Store, invocation: Invocation, id: string): Promise<CommandResult> {
  const { data, text } = toResult(await administer(store, invocation).show(id))
  const read = (last: Delivery | undefined, rows: number) =>
    store.webhooks.listDeliveries(id, 'pending', last, rows)
  let pending = 0
  for await (const _ of readRows(read)) pending++
  const lost = `${pluralize(pending, 'pending delivery', 'pending deliveries')} would not be sent.`
  const document = { ...data as object, dry_run: true, pending_deliveries: pending }
  return { data: document, text, notes: () => [`Dry run: nothing was changed. ${lost}`] }
}

function toResult(webhook: Webhook): CommandResult {
  return { data: webhookJson(webhook), text: formatDetails(webhookDetails(webhook)) }
}

function webhookDetails(webhook: Webhook): (readonly [name: string, value: string | undefined])[] {
  const data = webhookJson(webhook)
  const timeOf = (member: string) => {
    const instant = data[member]
    return typeof instant === 'string' ? formatTime(Date.parse(instant)) : undefined
  }
  return [
    ['id', webhook.id],
    ['url', webhook.url],
    ['events', webhook.events.join(' ')],
    ['partner', webhook.partner ?? 'all'],
    ['state', webhook.state],
    ['created', formatTime(webhook.createdAt)],
    ['failing since', timeOf('failing_since')],
    ['old secret ends', timeOf('old_secret_expires_at')],
    ['pending removed', timeOf('pending_removed_at')],
  ]
}

async function list(store: Store, { output }: Invocation): Promise<CommandResult> {
  const all = await store.webhooks.listWebhooks()
  const rows = all.map(({ id, url, state, partner = '–', events, failingSince }) => {
    const shownState = failingSince === undefined ? state : `${state}, failing`
    return [id, shownState, partner, events.join(' '), url]
  })
  const table = formatTable(['id', 'state', 'partner', 'events', 'url'], rows, output)
  const data = all.map(webhookJson)
  if (rows.length === 0) return { data, text: '', notes: () => ['There are no webhooks yet.'] }
  return { data, text: table }
}

const create: StoreAction<[Options]> = async (store, invocation, options) => {
  const { event: events = [], partner, allowPrivate } = options
  const url = toHref(options.url!, allowPrivate)
  if (partner !== undefined) requireNotRemoved(await findPartner(store, partner))
  const key = await requireWebhookKey(options.webhookKeyFile, invocation)
  const webhooks = administer(store, invocation, { key, allowPrivate })
  return await showSecret(invocation, options, () => webhooks.create({ url, events, partner }))
}

const rotate: StoreAction<[string, Options]> = async (store, invocation, id, options) => {
  const key = await requireWebhookKey(options.webhookKeyFile, invocation)
  const webhooks = administer(store, invocation, { key })
  const { overlap: overlapMs } = options
  return await showSecret(invocation, options, () => webhooks.rotateSecret(id, { overlapMs }))
}

const update: StoreAction<[string, Options]> = async (store, invocation, id, options) => {
  const { url, event: events, allowPrivate } = options
  const webhooks = administer(store, invocation, { allowPrivate })
  return toResult(await webhooks.update(id, { url: url && toHref(url, allowPrivate), events }))
}

const enable: StoreAction<[string]> = async (store, invocation, id) =>
  toResult(await administer(store, invocation).enable(id))

const disable: StoreAction<[string, Options]> = async (store, invocation, id, { dryRun }) =>
  dryRun ? await previewEnd(store, invocation, id) : toResult(await administer(store, invocation).disable(id))

const remove: StoreAction<[string, Options]> = async (store, invocation, id, { yes, dryRun }) => {
  if (dryRun) return await previewEnd(store, invocation, id)
  const webhooks = administer(store, invocation)
  const { url } = await webhooks.show(id)
  if (!yes) await confirm(invocation.io, `This removes webhook ${id} (${printable(url)}).`, id)
  return toResult(await webhooks.remove(id))
}

async function showSecret(
  invocation: Invocation,
  options: Options,
  make: () => Promise<WebhookWithSecret>,
): Promise<CommandResult> {
  return await makeSecret(invocation, options, async () => {
    const { webhook, secret } = await make()
    const { data } = toResult(webhook)
    const args = [webhook.id]
    const remedy = { purpose: 'To make another one', command: 'webhooks rotate-secret', args }
    return {
      kind: 'secret',
      secret,
      lost: { detail: 'The secret is lost.', remedy },
      toResult: (name, value) => ({
        data: { [name]: value, ...data as object },
        text: formatDetails([[name, value], ...webhookDetails(webhook)]),
      }),
    }
  })
}

const sendTest: StoreAction<[string, Options]> = async (store, invocation, id, options) => {
  const webhook = await administer(store, invocation).show(id)
  const createdAt = timeOf(store)
  const key = await requireWebhookKey(options.webhookKeyFile, invocation)
  const secrets = await openSecrets(key, webhook, createdAt).catch(({ message }) => {
    throw usageError(`${message} Pass the key of the servers.`)
  })
  const { createWebhookSender } = await import('../../adapters/webhooks/sender.ts')
  const sender = createWebhookSender(options.allowPrivate ?? false)
  const event = { id: drawId('msg_'), type: 'webhook.test', partner: webhook.partner, createdAt } as const
  const startedAt = performance.now()
  const { payload } = createEvent(event, {})
  const { status = null, error } = (await sender.send(webhook.url, secrets, event.id, payload))!
  const ms = Math.round(performance.now() - startedAt)
  await sender.close()
  if (error === undefined) return { data: { status, ms }, text: `Delivered in ${ms} ms: status ${status}.\n` }
  throw new CliError(1, 'not_delivered', `Not delivered in ${ms} ms: ${error}.`, { members: { status, ms } })
}

const listDeliveries: StoreAction<[string, Options], void> = async (store, invocation, id, options) => {
  const { state, limit } = options
  const { output } = invocation
  await administer(store, invocation).show(id)
  await output.table<Delivery>(
    readRows((last, rows) => store.webhooks.listDeliveries(id, state, last, rows)),
    deliveryJson,
    ['id', 'created', 'type', 'partner', 'state', 'attempts', 'due or settled', 'last attempt'],
    ({ id, createdAt, type, partner = '–', state, attempts, dueAt, lastStatus = '–', lastError }) => [
      id,
      formatTime(createdAt),
      type,
      partner,
      state,
      String(attempts),
      formatTime(dueAt),
      String(lastError ?? lastStatus),
    ],
    limit ?? output.pageRows,
  )
}

const replay: StoreAction<[string, Options]> = async (store, invocation, id, { delivery: ids }) => {
  const { state } = await administer(store, invocation).show(id)
  if (state === 'disabled') {
    const remedy = { purpose: 'To enable it', command: 'webhooks enable', args: [id] }
    throw new CliError(1, 'webhook_disabled', 'A disabled webhook gets no deliveries.', { remedy })
  }
  const replayed = new Set<string>()
  for (let start = 0; start < ids.length; start += 500) {
    const found = await store.webhooks.replayDeliveries(id, ids.slice(start, start + 500))
    for (const each of found) replayed.add(each)
  }
  const text = `${pluralize(replayed.size, 'delivery', 'deliveries')} will be sent again.`
  const unknown = ids.find((each) => !replayed.has(each))
  if (unknown === undefined) return { data: { deliveries: replayed.size }, text: `${text}\n` }
  const detail = `This webhook has no delivery ${formatValue(unknown)}. ${text}`
  throw new CliError(1, 'delivery_not_found', detail, { members: { deliveries: replayed.size } })
}
