/** Webhooks and their outbox: the rules of all stores, and one SQL text for both SQL stores. */
import { type AuditRecord, webhookSnapshot } from '../../core/audit/records.ts'
import { all, andThen, type MaybePromise } from '../../core/lib/promise.ts'
import { compareCodePoints } from '../../core/lib/text.ts'
import type { AuditContext } from '../../core/ports/changes.ts'
import {
  type Delivery,
  type DeliveryResult,
  MAX_WEBHOOKS,
  RETENTION_MS,
  type Webhook,
  type WebhookChangeType,
  type WebhookEvent,
  type WebhookStore,
} from '../../core/ports/webhooks.ts'
import { webhookDisabledEvent } from '../../core/webhooks/events.ts'
import { type Codec, createRowFormat, type StoredRow, type Value } from './row-format.ts'
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

/** What a change of a webhook comes to. Its audit record has no secrets, and `failingSince` is no change. */
export function changeWebhook(
  stored: readonly Webhook[],
  id: string,
  type: WebhookChangeType,
  context: AuditContext,
  change: Parameters<WebhookStore['changeWebhook']>[3],
): {
  readonly result: Webhook | undefined
  readonly auditRecords: readonly AuditRecord[]
  readonly events: () => readonly WebhookEvent[]
} {
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
  return {
    result: after,
    events,
    auditRecords: [{ type, partner, keyId: undefined, subject: id, ...states }],
  }
}

/** What a database can store: errors come from other servers. */
export function storableResult(result: DeliveryResult): DeliveryResult {
  const lastError = result.lastError?.slice(0, 500).toWellFormed().replaceAll('\0', '')
  return { ...result, retryMs: Math.round(result.retryMs), lastError }
}

type Query = (sql: string, parameters: readonly Value[]) => MaybePromise<StoredRow[]>

/** How a SQL store runs the statements, whose parameters are `$1`, `$2`, …, and whose tables are in `partner_api`. */
export interface WebhookDatabase {
  readonly read: Query
  /** Runs statements with the same parameters in one transaction. @returns The rows of the last. */
  write(statements: readonly string[], parameters: readonly Value[]): MaybePromise<StoredRow[]>
  /** The same for what may be lost in a power failure: then it is attempted again. */
  readonly writeUnsynced: WebhookDatabase['write']
  /** Writes what `work` returns to the audit log in the same transaction; nothing if that is nothing. */
  change(
    context: AuditContext,
    work: (query: Query) => MaybePromise<WebhookChange>,
  ): MaybePromise<WebhookChange['result']>
}

type WebhookChange = ReturnType<typeof changeWebhook>

/** SQL in which the databases differ. */
export interface WebhookDialect {
  /** Milliseconds since the epoch. */
  readonly now: string
  /** The objects of a parameter that is a JSON array, as a table of one column: `value`. */
  rows(parameter: string): string
  readonly forUpdate: string
  readonly skipLocked: string
}

/**
 * Adds deliveries for all webhooks that events match.
 *
 * @param events Selects id, type, partner, created_at and payload.
 */
export function enqueueSql({ now }: WebhookDialect, events: string, condition: string = subscribed): string {
  return `
    INSERT INTO partner_api.webhook_delivery
      (webhook, id, type, partner, created_at, payload, state, attempts, due_at)
    SELECT w.id, e.id, e.type, e.partner, e.created_at, e.payload, 'pending', 0, ${now}
    FROM (${events}) AS e JOIN partner_api.webhook w ON ${condition} WHERE true
    ON CONFLICT (webhook, id) DO NOTHING`
}

const subscribed = `w.state = 'active' AND w.events LIKE '%"' || e.type || '"%'
  AND (w.partner IS NULL OR w.partner = e.partner)`

/** The events of a parameter: `WebhookEvent[]` as JSON. */
export function eventRowsSql({ rows }: WebhookDialect): string {
  return `SELECT value ->> 'id' AS id, value ->> 'type' AS type, value ->> 'partner' AS partner,
    CAST(value ->> 'createdAt' AS BIGINT) AS created_at, value ->> 'payload' AS payload FROM ${rows('$1')}`
}

export function createWebhookStore(
  dialect: WebhookDialect,
  { read, write, writeUnsynced, change }: WebhookDatabase,
): WebhookStore {
  const { now, rows, forUpdate, skipLocked } = dialect
  const deliveries = 'partner_api.webhook_delivery'
  const { columns } = WEBHOOKS
  // The columns in their order. A backup of an older version may be without the last.
  const select = 'SELECT * FROM partner_api.webhook ORDER BY id'
  const upsert = `
    INSERT INTO partner_api.webhook (${columns}) VALUES (${columns.map((_, index) => `$${index + 1}`)})
    ON CONFLICT (id) DO UPDATE SET ${columns.map((column) => `${column} = excluded.${column}`)}`
  const isDue = `state = 'pending' AND due_at <= (SELECT ${now})`
  // MATERIALIZED has Postgres choose the deliveries once.
  const lease = `
    WITH chosen AS MATERIALIZED (
      SELECT id FROM ${deliveries} WHERE webhook = $1 AND ${isDue}
        AND EXISTS (SELECT 1 FROM partner_api.webhook WHERE id = $1 AND state = 'active')
      ORDER BY due_at, id LIMIT CAST($2 AS BIGINT) ${skipLocked}
    ) UPDATE ${deliveries} SET due_at = ${now} + CAST($3 AS BIGINT)
    WHERE webhook = $1 AND id IN (SELECT id FROM chosen) RETURNING ${DELIVERIES.columns}`
  const replay = `UPDATE ${deliveries} SET state = 'pending', attempts = 0, due_at = ${now}
    WHERE webhook = $1 AND id IN (SELECT value ->> 'id' FROM ${rows('$2')}) RETURNING id`
  const list = `SELECT ${DELIVERIES.columns} FROM ${deliveries}
    WHERE webhook = $1 AND state = $2 AND (created_at, id) < (CAST($3 AS BIGINT), CAST($4 AS TEXT))
    ORDER BY created_at DESC, id DESC LIMIT CAST($5 AS BIGINT)`
  const results = `(SELECT value ->> 'webhook' AS webhook, value ->> 'id' AS id, value ->> 'state' AS state,
    CAST(value ->> 'retryMs' AS BIGINT) AS retry_ms, CAST(value ->> 'lastStatus' AS INTEGER) AS last_status,
    value ->> 'lastError' AS last_error FROM ${rows('$1')})`
  // An expression of the state, so that the primary key is used and not an index of all that are pending.
  const settle = `
    UPDATE ${deliveries} AS d SET state = r.state, attempts = d.attempts + 1, last_status = r.last_status,
      last_error = r.last_error, due_at = ${now} + CASE r.state WHEN 'pending' THEN r.retry_ms ELSE 0 END
    FROM ${results} AS r WHERE d.webhook = r.webhook AND d.id = r.id
      AND d.state || '' IN ('pending', CASE r.state WHEN 'delivered' THEN 'failed' END)`
  const setFailing = `
    UPDATE partner_api.webhook SET failing_since = CASE r.delivered WHEN 0 THEN ${now} END
    FROM (SELECT webhook, sum(CASE state WHEN 'delivered' THEN 1 ELSE 0 END) AS delivered FROM ${results} AS r
      GROUP BY webhook) AS r
    WHERE id = r.webhook AND (failing_since IS NULL) = (r.delivered = 0)`
  // Each webhook that has deliveries is found by a look-up, also a removed one. Older versions enable one and keep `disabled_at`.
  const prune = `
    WITH RECURSIVE held (webhook) AS (
      SELECT min(webhook) FROM ${deliveries} UNION ALL
      SELECT (SELECT min(webhook) FROM ${deliveries} d WHERE d.webhook > held.webhook) FROM held WHERE webhook IS NOT NULL
    ), chosen AS MATERIALIZED (
      SELECT d.webhook, d.id FROM held CROSS JOIN (VALUES ('pending'), ('delivered'), ('failed')) AS s
      JOIN ${deliveries} d ON d.webhook = held.webhook AND d.state = s.column1 AND d.due_at <= CASE
        WHEN NOT EXISTS (SELECT 1 FROM partner_api.webhook w WHERE w.id = held.webhook) THEN ${Number.MAX_SAFE_INTEGER}
        WHEN s.column1 <> 'pending' THEN (SELECT ${now}) - ${RETENTION_MS}
        WHEN (SELECT disabled_at FROM partner_api.webhook w WHERE w.id = held.webhook AND state = 'disabled') <= (SELECT ${now}) - ${RETENTION_MS}
          THEN ${Number.MAX_SAFE_INTEGER} END
      LIMIT ${MAX_BATCH}
    ) DELETE FROM ${deliveries} WHERE (webhook, id) IN (SELECT webhook, id FROM chosen) RETURNING webhook, state`

  return {
    listWebhooks: () => andThen(read(select, []), (found) => found.map(WEBHOOKS.read)),

    changeWebhook: (id, type, context, apply) =>
      change(context, (query) =>
        andThen(query(select + forUpdate, []), (found) => {
          const changed = changeWebhook(found.map(WEBHOOKS.read), id, type, context, apply)
          const { result, auditRecords } = changed
          if (auditRecords.length === 0) return changed
          const written = result === undefined
            ? query('DELETE FROM partner_api.webhook WHERE id = $1', [id])
            : query(upsert, WEBHOOKS.values(result))
          return andThen(written, () => changed)
        })),

    enqueue(events, webhook) {
      if (events.length === 0) return
      const only = webhook === undefined ? [] : [webhook]
      const sql = enqueueSql(dialect, eventRowsSql(dialect), only.length === 0 ? subscribed : 'w.id = $2')
      return andThen(write([sql], [JSON.stringify(events), ...only]), () => undefined)
    },

    dueWebhooks: () =>
      andThen(
        read(
          `SELECT id FROM (
            SELECT id, (SELECT min(due_at) FROM ${deliveries} WHERE webhook = w.id AND ${isDue}) AS since
            FROM partner_api.webhook w WHERE state = 'active'
          ) AS due WHERE since IS NOT NULL ORDER BY since, id`,
          [],
        ),
        (found) => found.map(([id]) => String(id)),
      ),

    leaseDeliveries: (webhook, limit, leaseMs) =>
      andThen(
        writeUnsynced([lease], [webhook, limit, leaseMs]),
        (found) => found.map(DELIVERIES.read).sort((a, b) => newestFirst(b, a)),
      ),

    settleDeliveries(settled) {
      if (settled.length === 0) return
      const parameters = [JSON.stringify(settled.map(storableResult))]
      return andThen(writeUnsynced([settle, setFailing], parameters), () => undefined)
    },

    listDeliveries(
      webhook,
      state,
      { createdAt, id } = { createdAt: Number.MAX_SAFE_INTEGER, id: '' },
      limit,
    ) {
      const states = state === undefined ? ['pending', 'delivered', 'failed'] : [state]
      return all(
        states.map((each) => read(list, [webhook, each, createdAt, id, limit])),
        (pages) => pages.flat().map(DELIVERIES.read).sort(newestFirst).slice(0, limit),
      )
    },

    countPending: (webhook) =>
      andThen(
        read(
          `SELECT count(*) FROM (
            SELECT 1 FROM ${deliveries} WHERE webhook = $1 AND state = 'pending' LIMIT ${MAX_COUNT}) AS pending`,
          [webhook],
        ),
        ([row]) => Number(row![0]),
      ),

    replayDeliveries: (webhook, ids) =>
      andThen(
        write([replay], [webhook, JSON.stringify(ids.map((id) => ({ id })))]),
        (replayed) => replayed.map(([id]) => String(id)),
      ),

    pruneDeliveries: () =>
      andThen(
        write([prune], []),
        (pruned) =>
          pruned.map(([webhook, state]) => ({ webhook: String(webhook), state: state as Delivery['state'] })),
      ),
  }
}
