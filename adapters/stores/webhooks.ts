/** Webhooks and their outbox: what all stores share. */
import { webhookSnapshot } from '../../core/audit/records.ts'
import { compareCodePoints } from '../../core/lib/text.ts'
import type { AuditContext } from '../../core/ports/changes.ts'
import {
  type Delivery,
  type DeliveryResult,
  MAX_WEBHOOKS,
  type Webhook,
  type WebhookChangeType,
  type WebhookStore,
} from '../../core/ports/webhooks.ts'
import { webhookDisabledEvent } from '../../core/webhooks/events.ts'
import { type Codec, createRowFormat } from './row-format.ts'
import type { AuditedChange } from './sql/database.ts'
import { StoreError } from './store-error.ts'

const json = { encode: JSON.stringify, decode: JSON.parse } satisfies Codec<readonly never[]>

type Secret = Webhook['secrets'][number]

const secretsCodec: Codec<readonly Secret[]> = {
  encode: JSON.stringify,
  decode: (text) => JSON.parse(text).map(({ sealed, expiresAt }: Secret) => ({ sealed, expiresAt })),
}

export const WEBHOOKS = createRowFormat<Webhook>({ events: json, secrets: secretsCodec })([
  ...['id', 'url', 'events', 'partner', 'state', 'createdAt', 'secrets', 'failingSince'] as const,
  'disabledAt',
])

export const DELIVERIES = createRowFormat<Delivery>()([
  ...['webhook', 'id', 'type', 'partner', 'createdAt', 'payload'] as const,
  ...['state', 'attempts', 'dueAt', 'lastStatus', 'lastError'] as const,
])

/** Deliveries that are removed at once: a statement holds the write lock of SQLite. */
export const MAX_BATCH = 500
/** Deliveries that are counted at most, for the same reason. */
export const MAX_COUNT = 10_000

export function newestFirst(a: Delivery, b: Delivery): number {
  return b.createdAt - a.createdAt || compareCodePoints(b.id, a.id)
}

/** Applies a change to a webhook. Its audit record has no secrets, and `failingSince` is no change. */
export function changeWebhook(
  stored: readonly Webhook[],
  id: string,
  type: WebhookChangeType,
  context: AuditContext,
  change: Parameters<WebhookStore['changeWebhook']>[3],
): Required<AuditedChange<Webhook | undefined>> {
  const before = stored.find((webhook) => webhook.id === id)
  const changed = change(before)
  const events = () => type === 'webhook.disabled' ? [webhookDisabledEvent(after!, context)] : []
  if (changed === before) return { result: before, auditRecords: [], events }
  const after = changed &&
    { ...changed, disabledAt: changed.state === 'active' ? undefined : before?.disabledAt ?? context.at }
  if (before === undefined && stored.length >= MAX_WEBHOOKS) {
    throw new StoreError('refused', `The webhook cannot be created: there are ${MAX_WEBHOOKS} already.`)
  }
  const { partner } = (after ?? before)!
  const states = { before: before && webhookSnapshot(before), after: after && webhookSnapshot(after) }
  const record = { type, partner, keyId: undefined, subject: id, ...states }
  return { result: after, events, auditRecords: [record] }
}

/** What a database can store: errors come from other servers. */
export function storableResult(result: DeliveryResult): DeliveryResult {
  const lastError = result.lastError?.slice(0, 500).toWellFormed().replaceAll('\0', '')
  return { ...result, retryMs: Math.round(result.retryMs), lastError }
}
