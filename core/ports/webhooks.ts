import type { MaybePromise } from '../lib/promise.ts'
import { MS_PER_DAY } from '../lib/time.ts'
import type { AuditContext, CreationPosition } from './changes.ts'

/** The events that a webhook can be sent. */
export const WEBHOOK_EVENT_TYPES = [
  'signup.created',
  'key.issued',
  'key.updated',
  'key.disabled',
  'key.enabled',
  'key.rotated',
  'key.revoked',
  'key.expiring',
  'key.expired',
  'scope.granted',
  'scope.removed',
  'partner.updated',
  'partner.suspended',
  'partner.resumed',
  'partner.removed',
  'module.activated',
  'module.deactivated',
  'quota.warning',
  'quota.reached',
  'webhook.disabled',
] as const

/** A type of event. */
export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number]

/** The most webhooks of a store. */
export const MAX_WEBHOOKS = 100

/** The most secrets of a webhook that sign at a time. */
export const MAX_SECRETS = 4

/** Milliseconds that settled deliveries are kept, and pending ones of a disabled webhook. */
export const RETENTION_MS: number = 30 * MS_PER_DAY

/** A URL that events are sent to. Instants are milliseconds since the epoch. */
export interface Webhook {
  /** `whk_` and 20 characters. */
  readonly id: string
  /** Where deliveries are posted. */
  readonly url: string
  /** The types of the events that it is sent, at least one. */
  readonly events: readonly WebhookEventType[]
  /** Slug: only events about this partner; `undefined` for all. */
  readonly partner: string | undefined
  /** Events are written for active webhooks only; pending deliveries of a disabled one wait. */
  readonly state: 'active' | 'disabled'
  /** When it was created. */
  readonly createdAt: number
  /** The signing secrets, encrypted, the current one first; those that were replaced have an expiry. */
  readonly secrets: readonly { readonly sealed: string; readonly expiresAt: number | undefined }[]
  /** Since when it is disabled; kept by `changeWebhook`. */
  readonly disabledAt?: number | undefined
  /** When the first attempt failed since one succeeded; kept by `settleDeliveries`. */
  readonly failingSince: number | undefined
}

/** A kind of change in the audit log. */
export type WebhookChangeType =
  | `webhook.${'created' | 'updated' | 'removed'}`
  | `webhook.${'enabled' | 'disabled' | 'rotated'}`

/**
 * A change of a webhook: returns the webhook as it is to be stored, `undefined` to remove it, or its argument to change
 * nothing. The argument is `undefined` if there is no such webhook.
 */
export type WebhookEdit = (current: Webhook | undefined) => Webhook | undefined

/** An event that is to be sent. */
export interface WebhookEvent {
  /** `msg_…`, the same for all webhooks: the header `webhook-id`. */
  readonly id: string
  /** `webhook.test` is sent on request only. */
  readonly type: WebhookEventType | 'webhook.test'
  /** Slug of the partner that it is about. */
  readonly partner: string | undefined
  /** When it happened. */
  readonly createdAt: number
  /** The body as it is sent. */
  readonly payload: string
}

/** An event that is to be sent, or was, to one webhook. Unique by webhook and id. */
export interface Delivery extends WebhookEvent {
  /** Id of the webhook. */
  readonly webhook: string
  /** `delivered` and `failed` are settled: there are no further attempts. */
  readonly state: 'pending' | 'delivered' | 'failed'
  /** Settled attempts, 0 or more. */
  readonly attempts: number
  /** When the next attempt is due or, while it is leased, the lease ends; when it was settled. By the store's clock. */
  readonly dueAt: number
  /** Status of the last response, if there was one. */
  readonly lastStatus: number | undefined
  /** Why the last attempt failed, without secrets. */
  readonly lastError: string | undefined
}

/** A delivery that was removed. */
export interface PrunedDelivery {
  /** Id of the webhook. */
  readonly webhook: string
  /** The last state of the delivery. */
  readonly state: Delivery['state']
}

/** The outcome of an attempt. */
export interface DeliveryResult
  extends Pick<Delivery, 'webhook' | 'id' | 'state' | 'lastStatus' | 'lastError'> {
  /** Milliseconds until the next attempt of a `pending` one, 0 or more. */
  readonly retryMs: number
}

/** Webhooks and their outbox. Deliveries are written in the transaction of the change that causes them. */
export interface WebhookStore {
  /** All webhooks, by id. */
  listWebhooks(): MaybePromise<readonly Webhook[]>

  /**
   * Creates, changes or removes a webhook in a transaction, with an audit entry. Moves no revision.
   *
   * @param change Called under a lock, perhaps more than once.
   * @returns The webhook as it is stored then.
   * @throws {StoreError} `refused` when there would be more than `MAX_WEBHOOKS`; whatever `change` throws.
   */
  changeWebhook(
    id: string,
    type: WebhookChangeType,
    context: AuditContext,
    change: WebhookEdit,
  ): MaybePromise<Webhook | undefined>

  /**
   * Adds deliveries, due at once, for the active webhooks that events and partner match. Those
   * that exist are left alone.
   *
   * @param webhook Only for this one, whatever its state and events.
   */
  enqueue(events: readonly WebhookEvent[], webhook?: string): MaybePromise<void>

  /** The ids of active webhooks that have a delivery to lease, those that are due longest first. Takes no lock. */
  dueWebhooks(): MaybePromise<readonly string[]>

  /**
   * Leases pending deliveries of an active webhook, those that are due longest, in the order of their events: no other
   * caller gets them until the lease ends. Then they are due again.
   *
   * @param limit 1–500. SQLite takes some 50 µs for each, and does nothing else in that time.
   */
  leaseDeliveries(webhook: string, limit: number, leaseMs: number): MaybePromise<readonly Delivery[]>

  /**
   * Records the outcomes of attempts, and `failingSince`, in one round trip. The outcome of an expired lease is
   * recorded unless another attempt has settled the delivery; a success always is.
   */
  settleDeliveries(results: readonly DeliveryResult[]): MaybePromise<void>

  /** Deliveries of a webhook, newest event first; `after` is the last one seen. */
  listDeliveries(
    webhook: string,
    state: Delivery['state'] | undefined,
    after: CreationPosition | undefined,
    limit: number,
  ): MaybePromise<readonly Delivery[]>

  /** The number of pending deliveries of a webhook, 10,000 at most. */
  countPending(webhook: string): MaybePromise<number>

  /**
   * Makes deliveries pending, due at once and without attempts.
   *
   * @param ids 500 at most.
   * @returns Those that exist.
   */
  replayDeliveries(webhook: string, ids: readonly string[]): MaybePromise<readonly string[]>

  /**
   * Removes what was settled 30 days ago, deliveries of removed webhooks, and pending ones of webhooks that have been
   * disabled for 30 days. Call it again until it returns none.
   *
   * @returns What was removed: 500 at most.
   */
  pruneDeliveries(): MaybePromise<readonly PrunedDelivery[]>
}
