/** Administration of webhooks, for programs without the command line. */
import { createAdministrator, findPartner, type Operator } from '../../core/admin/apply.ts'
import { AdminError, notFoundError } from '../../core/admin/error.ts'
import { DEFAULT_OVERLAP_MS } from '../../core/admin/rotation.ts'
import { requireNotRemoved } from '../../core/admin/validate.ts'
import { formatValue } from '../../core/http/redact.ts'
import { drawId } from '../../core/lib/ids.ts'
import { assertInteger, assertKind, assertOptions, type OptionKinds } from '../../core/lib/options.ts'
import type { WebUrl } from '../../core/lib/web-globals.ts'
import { MS_PER_DAY } from '../../core/lib/time.ts'
import type { Store } from '../../core/ports/store.ts'
import {
  MAX_SECRETS,
  type Webhook,
  WEBHOOK_EVENT_TYPES,
  type WebhookChangeType,
  type WebhookEventType,
} from '../../core/ports/webhooks.ts'
import { isPublicUrl } from './addresses.ts'
import { assertWebhookKey, createWebhookSecret, type WebhookKey } from './secrets.ts'

/** A webhook that is to be created. */
export interface NewWebhook {
  /** An `https:` address of at most 2,000 characters, without credentials and fragment; a public one. */
  readonly url: string
  /** The types of the events that it is sent, at least one. */
  readonly events: readonly WebhookEventType[]
  /** Slug: only events about this partner; default all. */
  readonly partner?: string | undefined
}

/** What changes of a webhook. */
export interface WebhookUpdate {
  /** The address, with the rules of that of a new webhook. */
  readonly url?: string | undefined
  /** The types of events that replace those that it has, at least one. */
  readonly events?: readonly WebhookEventType[] | undefined
}

/** A webhook and its new signing secret, which is stored encrypted and shown only here. */
export interface WebhookWithSecret {
  /** The webhook as it is stored. */
  readonly webhook: Webhook
  /** `whsec_` and 32 bytes in Base64. */
  readonly secret: string
}

/** How webhooks are administered. */
export interface WebhookAdministrationOptions {
  /** Encrypts new secrets: the key of the processes that deliver. Needed to create a webhook and to rotate a secret. */
  readonly key?: WebhookKey | undefined
  /** Whether private addresses and `http:` are allowed, too; default false. */
  readonly allowPrivate?: boolean | undefined
}

/** Changes of webhooks, each with an entry in the audit log. */
export interface WebhookAdministration {
  /** All webhooks, by id. */
  list(): Promise<readonly Webhook[]>
  /** Finds a webhook. @throws {AdminError} `webhook_not_found` */
  show(id: string): Promise<Webhook>
  /**
   * Creates an active webhook.
   * @throws {AdminError} `invalid_url`, `invalid_event`, `partner_not_found`, `partner_removed`.
   * @throws {StoreError} `refused` when the store has 100 already.
   */
  create(created: NewWebhook): Promise<WebhookWithSecret>
  /** Changes URL and events. @throws {AdminError} `webhook_not_found`, `invalid_url`, `invalid_event`. */
  update(id: string, update: WebhookUpdate): Promise<Webhook>
  /** Delivers events to a disabled webhook again. @throws {AdminError} `webhook_not_found`, `partner_removed`. */
  enable(id: string): Promise<Webhook>
  /** Writes and delivers no events for a webhook until it is enabled again. @throws {AdminError} `webhook_not_found` */
  disable(id: string): Promise<Webhook>
  /**
   * Replaces the signing secret of a webhook.
   * @param options.overlapMs How long deliveries are signed with the old one, too: milliseconds, default a day.
   * @throws {AdminError} `webhook_not_found`, and `too_many_secrets` when four overlap already.
   */
  rotateSecret(id: string, options?: { readonly overlapMs?: number | undefined }): Promise<WebhookWithSecret>
  /** Removes a webhook and its deliveries. @returns What it was. @throws {AdminError} `webhook_not_found` */
  remove(id: string): Promise<Webhook>
}

const newWebhookKinds: OptionKinds<NewWebhook> = {
  url: 'a text',
  events: 'a list of texts',
  partner: 'a text',
}

/**
 * Administers the webhooks of a store.
 *
 * @throws {RangeError} for an invalid name of the operator.
 * @example
 * ```ts
 * const key = await importWebhookKey(process.env.WEBHOOK_KEY)
 * const webhooks = createWebhookAdministration(store, { actor: 'shop' }, { key })
 * const { secret } = await webhooks.create({ url: 'https://hooks.example', events: ['signup.created'] })
 * ```
 */
export function createWebhookAdministration(
  store: Store,
  operator: Operator,
  options: WebhookAdministrationOptions = {},
): WebhookAdministration {
  assertOptions('createWebhookAdministration', options, { key: 'an object', allowPrivate: 'true or false' })
  const { key, allowPrivate = false } = options
  assertWebhookKey('createWebhookAdministration', key)
  const { now } = createAdministrator(store, operator)
  const { actor } = operator

  async function show(id: string): Promise<Webhook> {
    const found = (await store.webhooks.listWebhooks()).find((each) => each.id === id)
    return requireFound(id, found)
  }

  /** @param edit Gets the webhook as it is stored. */
  async function change(
    id: string,
    type: WebhookChangeType,
    edit: (webhook: Webhook) => Webhook,
  ): Promise<Webhook> {
    const context = { actor, at: now() }
    const changed = await store.webhooks.changeWebhook(
      id,
      type,
      context,
      (stored) => edit(requireFound(id, stored)),
    )
    return changed!
  }

  async function newSecret(id: string) {
    if (key === undefined) throw new TypeError('createWebhookAdministration: new secrets need a key.')
    const secret = createWebhookSecret()
    return { secret, stored: { sealed: await key.seal(secret, id), expiresAt: undefined } }
  }

  async function requirePartner(slug: string | undefined): Promise<void> {
    if (slug !== undefined) requireNotRemoved(await findPartner(store, slug))
  }

  /** Disables an active webhook of a partner that was removed, perhaps after its webhooks were disabled. */
  async function confirmPartner({ id, partner }: Webhook): Promise<void> {
    if (partner === undefined) return
    const found = await findPartner(store, partner)
    if (found.state === 'removed') {
      await change(id, 'webhook.disabled', (webhook) => inState(webhook, 'disabled'))
    }
    requireNotRemoved(found)
  }

  return {
    list: async () => await store.webhooks.listWebhooks(),
    show,
    async create(created) {
      assertOptions('webhooks.create', created, newWebhookKinds)
      const { partner } = created
      const url = requireUrl(created.url, allowPrivate)
      const events = requireEvents(created.events)
      await requirePartner(partner)
      const id = drawId('whk_')
      const { secret, stored } = await newSecret(id)
      const at = now()
      const webhook: Webhook = {
        id,
        url,
        events,
        partner,
        state: 'active',
        failingSince: undefined,
        createdAt: at,
        secrets: [stored],
      }
      await store.webhooks.changeWebhook(id, 'webhook.created', { actor, at }, () => webhook)
      try {
        await confirmPartner(webhook)
      } catch (error) {
        // When the store fails, the webhook exists: its secret would be lost.
        if (error instanceof AdminError) throw error
      }
      return { webhook, secret }
    },
    async update(id, update) {
      assertOptions('webhooks.update', update, { url: 'a text', events: 'a list of texts' })
      const url = update.url === undefined ? undefined : requireUrl(update.url, allowPrivate)
      const events = update.events === undefined ? undefined : requireEvents(update.events)
      return await change(id, 'webhook.updated', (webhook) => updated(webhook, url, events))
    },
    async enable(id) {
      await requirePartner((await show(id)).partner)
      const webhook = await change(id, 'webhook.enabled', (webhook) => inState(webhook, 'active'))
      await confirmPartner(webhook)
      return webhook
    },
    disable: (id) => change(id, 'webhook.disabled', (webhook) => inState(webhook, 'disabled')),
    async rotateSecret(id, given = {}) {
      assertOptions('webhooks.rotateSecret', given, { overlapMs: 'a number' })
      const overlapMs = assertInteger(
        'overlapMs',
        given.overlapMs ?? DEFAULT_OVERLAP_MS,
        0,
        36_525 * MS_PER_DAY,
      )
      const { secret, stored } = await newSecret(id)
      const at = now()
      const webhook = await change(
        id,
        'webhook.rotated',
        (before) => withNewSecret(before, stored, at, overlapMs),
      )
      return { webhook, secret }
    },
    async remove(id) {
      const webhook = await show(id)
      await store.webhooks.changeWebhook(id, 'webhook.removed', { actor, at: now() }, (stored) => {
        requireFound(id, stored)
        return undefined
      })
      return webhook
    },
  }
}

/** @throws {AdminError} `webhook_not_found` */
function requireFound(id: string, webhook: Webhook | undefined): Webhook {
  if (webhook !== undefined) return webhook
  throw notFoundError('webhook_not_found', `There is no webhook ${formatValue(id)}.`, id)
}

/** The URL of a webhook in its normal form; `undefined` for one that none may have. */
export function parseWebhookUrl(text: string): WebUrl | undefined {
  const parsed = URL.parse(text)
  if (parsed === null || text.length > 2_000) return undefined
  const { protocol, username, password, hash } = parsed
  return /^https?:$/.test(protocol) && !username && !password && !hash ? parsed : undefined
}

function requireUrl(text: string, allowPrivate: boolean): string {
  const url = parseWebhookUrl(text)
  if (url === undefined) {
    throw new AdminError(
      'invalid_url',
      'A webhook needs an https:// address of at most 2000 characters, without credentials and fragment.',
    )
  }
  if (allowPrivate || isPublicUrl(url)) return url.href
  throw new AdminError('invalid_url', 'Deliveries are only sent to public addresses by https://.')
}

function requireEvents(events: readonly WebhookEventType[]): readonly WebhookEventType[] {
  assertKind('The events of a webhook', events, 'a list of texts')
  const unknown = events.find((event) => !WEBHOOK_EVENT_TYPES.includes(event))
  if (unknown === undefined && events.length > 0) return [...new Set(events)]
  throw new AdminError(
    'invalid_event',
    unknown === undefined
      ? 'A webhook needs one event or more.'
      : `There is no event ${formatValue(unknown)}.`,
  )
}

function updated(
  webhook: Webhook,
  url: string = webhook.url,
  events: Webhook['events'] = webhook.events,
): Webhook {
  const isSame = url === webhook.url && events.join() === webhook.events.join()
  return isSame ? webhook : { ...webhook, url, events }
}

/** Puts a secret first; those before it sign until their overlap ends. */
function withNewSecret(
  webhook: Webhook,
  secret: Webhook['secrets'][number],
  at: number,
  overlapMs: number,
): Webhook {
  const [current, ...older] = overlapMs === 0 ? [] : webhook.secrets
  const replaced = current === undefined ? [] : [{ ...current, expiresAt: at + overlapMs }]
  const secrets = [secret, ...replaced, ...older].filter(({ expiresAt = Infinity }) => expiresAt > at)
  if (secrets.length <= MAX_SECRETS) return { ...webhook, secrets }
  throw new AdminError(
    'too_many_secrets',
    `The webhook has ${MAX_SECRETS} secrets already: wait until an overlap ends.`,
    {
      purpose: 'To end all of them now',
      command: 'webhooks rotate-secret',
      args: [webhook.id, '--overlap', '0'],
    },
  )
}

function inState(webhook: Webhook, state: Webhook['state']): Webhook {
  return webhook.state === state ? webhook : { ...webhook, state, failingSince: undefined }
}
