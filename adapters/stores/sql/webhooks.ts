/** Webhooks and their outbox. */
import { webhookSnapshot } from '../../../core/audit/records.ts'
import { all, andThen } from '../../../core/lib/promise.ts'
import { compareCodePoints } from '../../../core/lib/text.ts'
import { MS_PER_DAY } from '../../../core/lib/time.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import {
  type Delivery,
  type DeliveryResult,
  MAX_WEBHOOKS,
  type PrunedDelivery,
  RETENTION_MS,
  type Webhook,
  type WebhookChangeType,
  type WebhookEdit,
  type WebhookEvent,
  type WebhookStore,
} from '../../../core/ports/webhooks.ts'
import { webhookDisabledEvent } from '../../../core/webhooks/events.ts'
import {
  type AuditedChange,
  type Dialect,
  idsSql,
  idsText,
  query,
  rowsSql,
  rowsText,
  type SqlDatabase,
  upsertRowsSql,
} from './database.ts'
import { createRowFormat } from './row-format.ts'
import { DELIVERIES, WEBHOOKS } from './tables.ts'

/** Deliveries that are removed at once: a statement holds the write lock of SQLite. */
const maxBatch = 500
/** Deliveries that are counted at most, for the same reason. */
const maxCount = 10_000

export const EVENTS = createRowFormat<WebhookEvent>()(['id', 'type', 'partner', 'createdAt', 'payload'])

const resultFormat = createRowFormat<DeliveryResult>()(
  ['webhook', 'id', 'state', 'retryMs', 'lastStatus', 'lastError'],
)

const prunedFormat = createRowFormat<PrunedDelivery>()(['webhook', 'state'])

const subscribed = `w.state = 'active' AND w.events LIKE '%"' || e.type || '"%'
  AND (w.partner IS NULL OR w.partner = e.partner)`

/**
 * Adds deliveries for all webhooks that events match.
 *
 * @param events A table of `EVENTS`. Default: of the parameter `$1`.
 */
export function enqueueSql(
  dialect: Dialect,
  events: string = rowsSql(dialect, EVENTS.columns),
  condition: string = subscribed,
): string {
  return `
    INSERT INTO partner_api.webhook_delivery
      (webhook, id, type, partner, created_at, payload, state, attempts, due_at)
    SELECT w.id, e.id, e.type, e.partner, e.created_at, e.payload, 'pending', 0, ${dialect.now}
    FROM ${events} AS e JOIN partner_api.webhook w ON ${condition} WHERE true
    ON CONFLICT (webhook, id) DO NOTHING`
}

/** Upper bounds of the lease of a new delivery, and of the time until another attempt. */
const maxFirstDelayMs = 3_600_000
const maxRetryDelayMs = 2 * MS_PER_DAY

export const SELECT_WEBHOOKS = `SELECT ${WEBHOOKS.columns} FROM partner_api.webhook ORDER BY id`
const deliveries = 'partner_api.webhook_delivery'

/** Webhooks that have deliveries, also removed ones: each is found by a look-up. */
const holders = `
  holder (webhook) AS (
    SELECT min(webhook) FROM ${deliveries} UNION ALL
    SELECT (SELECT min(webhook) FROM ${deliveries} d WHERE d.webhook > holder.webhook) FROM holder WHERE webhook IS NOT NULL
  )`

/** Removes the deliveries of signups. @param ids A table of the ids of signups, see `signupEvent`. */
export const deleteDeliveriesSql = (ids: string) => `
  WITH RECURSIVE ${holders}, chosen AS MATERIALIZED (
    SELECT webhook, 'msg_' || substr(given.id, 5) FROM holder CROSS JOIN ${ids} AS given WHERE webhook IS NOT NULL
  ) DELETE FROM ${deliveries} WHERE (webhook, id) IN (SELECT * FROM chosen) RETURNING 1`

/** The statements, whose first parameter is the id of a webhook, or the results that are settled. */
function statementsOf(dialect: Dialect) {
  const { now, skipLocked } = dialect
  const isDue = `state = 'pending' AND due_at <= (SELECT ${now})`
  const results = rowsSql(dialect, resultFormat.columns)
  const old = `(SELECT ${now}) - ${RETENTION_MS}`
  return {
    selectDue: `
      SELECT id FROM (
        SELECT id, (SELECT min(due_at) FROM ${deliveries} WHERE webhook = w.id AND ${isDue}) AS since
        FROM partner_api.webhook w WHERE state = 'active'
      ) AS due WHERE since IS NOT NULL ORDER BY since, id`,

    // MATERIALIZED has Postgres choose the deliveries once.
    lease: `
      WITH chosen AS MATERIALIZED (
        SELECT id FROM ${deliveries} WHERE webhook = $1 AND ${isDue}
          AND EXISTS (SELECT 1 FROM partner_api.webhook WHERE id = $1 AND state = 'active')
        ORDER BY due_at, id LIMIT CAST($2 AS BIGINT) ${skipLocked}
      ) UPDATE ${deliveries} SET due_at = ${now} + CAST($3 AS BIGINT)
      WHERE webhook = $1 AND id IN (SELECT id FROM chosen) RETURNING ${DELIVERIES.columns}`,

    replay: `
      UPDATE ${deliveries} SET state = 'pending', attempts = 0, due_at = ${now}
      WHERE webhook = $1 AND id IN ${idsSql(dialect, '$2')} RETURNING id`,

    list: `
      SELECT ${DELIVERIES.columns} FROM ${deliveries}
      WHERE webhook = $1 AND state = $2 AND (created_at, id) < (CAST($3 AS BIGINT), CAST($4 AS TEXT))
      ORDER BY created_at DESC, id DESC LIMIT CAST($5 AS BIGINT)`,

    countPending: `
      SELECT count(*) FROM (
        SELECT 1 FROM ${deliveries} WHERE webhook = $1 AND state = 'pending' LIMIT ${maxCount}) AS pending`,

    // An expression of the state, so that the primary key is used and not an index of all that are pending.
    settle: `
      UPDATE ${deliveries} AS d SET state = r.state, attempts = d.attempts + 1, last_status = r.last_status,
        last_error = r.last_error, due_at = ${now} + CASE r.state WHEN 'pending' THEN r.retry_ms ELSE 0 END
      FROM ${results} AS r WHERE d.webhook = r.webhook AND d.id = r.id
        AND d.state || '' IN ('pending', CASE r.state WHEN 'delivered' THEN 'failed' END)`,

    setFailing: `
      UPDATE partner_api.webhook SET failing_since = CASE r.delivered WHEN 0 THEN ${now} END
      FROM (SELECT webhook, sum(CASE state WHEN 'delivered' THEN 1 ELSE 0 END) AS delivered FROM ${results} AS r
        GROUP BY webhook) AS r
      WHERE id = r.webhook AND (failing_since IS NULL) = (r.delivered = 0)`,

    // They were due by a clock that was ahead.
    advance: `
      WITH RECURSIVE ${holders}, late AS MATERIALIZED (
        SELECT d.webhook, d.id FROM holder JOIN ${deliveries} d ON d.webhook = holder.webhook AND d.state = 'pending'
          AND d.due_at > (SELECT ${now}) + ${maxFirstDelayMs}
        WHERE d.attempts = 0 OR d.due_at > (SELECT ${now}) + ${maxRetryDelayMs}
        LIMIT ${maxBatch}
      ) UPDATE ${deliveries} SET due_at = ${now} WHERE (webhook, id) IN (SELECT webhook, id FROM late)`,

    prune: `
      WITH RECURSIVE ${holders}, chosen AS MATERIALIZED (
        SELECT d.webhook, d.id FROM holder CROSS JOIN (VALUES ('pending'), ('delivered'), ('failed')) AS s
        JOIN ${deliveries} d ON d.webhook = holder.webhook AND d.state = s.column1 AND d.due_at <= CASE
          WHEN NOT EXISTS (SELECT 1 FROM partner_api.webhook w WHERE w.id = holder.webhook) THEN ${Number.MAX_SAFE_INTEGER}
          WHEN s.column1 <> 'pending' THEN ${old}
          WHEN (SELECT disabled_at FROM partner_api.webhook w WHERE w.id = holder.webhook) <= ${old}
            THEN ${Number.MAX_SAFE_INTEGER} END
        LIMIT ${maxBatch}
      ) DELETE FROM ${deliveries} WHERE (webhook, id) IN (SELECT webhook, id FROM chosen) RETURNING ${prunedFormat.columns}`,
  }
}

export function upsertWebhooksSql(dialect: Dialect): string {
  return upsertRowsSql(dialect, 'webhook', WEBHOOKS.columns)
}

export function createWebhookStore(
  { dialect, read, write, writeUnsynced, transactionUnsynced, change }: SqlDatabase,
): WebhookStore {
  const statements = statementsOf(dialect)
  const upsert = upsertWebhooksSql(dialect)
  const select = `${SELECT_WEBHOOKS} ${dialect.forUpdate}`
  const states = ['pending', 'delivered', 'failed'] as const
  const newest = { createdAt: Number.MAX_SAFE_INTEGER, id: '' }

  return {
    listWebhooks: () => andThen(read(SELECT_WEBHOOKS), (found) => found.map(WEBHOOKS.read)),

    changeWebhook: (id, type, context, apply) =>
      change('uncached', context, function* () {
        const stored = (yield* query(select)).map(WEBHOOKS.read)
        const changed = changeWebhook(stored, id, type, context, apply)
        if (changed.auditRecords.length === 0) return changed
        if (changed.result === undefined) yield* query('DELETE FROM partner_api.webhook WHERE id = $1', [id])
        else yield* query(upsert, [rowsText(WEBHOOKS, [changed.result])])
        return changed
      }),

    enqueue(events, webhook) {
      if (events.length === 0) return
      const rows = rowsText(EVENTS, events)
      const enqueued = webhook === undefined
        ? write(enqueueSql(dialect), [rows])
        : write(enqueueSql(dialect, undefined, 'w.id = $2'), [rows, webhook])
      return andThen(enqueued, () => undefined)
    },

    dueWebhooks: () => andThen(read<[id: string]>(statements.selectDue), (found) => found.map(([id]) => id)),

    leaseDeliveries: (webhook, limit, leaseMs) =>
      andThen(
        writeUnsynced(statements.lease, [webhook, limit, leaseMs]),
        (found) => found.map(DELIVERIES.read).sort((a, b) => newestFirst(b, a)),
      ),

    settleDeliveries(settled) {
      if (settled.length === 0) return
      const rows = [rowsText(resultFormat, settled.map(storableResult))]
      return transactionUnsynced(function* () {
        yield* query(statements.settle, rows)
        yield* query(statements.setFailing, rows)
      })
    },

    listDeliveries: (webhook, state, { createdAt, id } = newest, limit) =>
      all(
        (state === undefined ? states : [state])
          .map((each) => read(statements.list, [webhook, each, createdAt, id, limit])),
        (pages) => pages.flat().map(DELIVERIES.read).sort(newestFirst).slice(0, limit),
      ),

    countPending: (webhook) =>
      andThen(read<[count: number]>(statements.countPending, [webhook]), ([row]) => row![0]),

    replayDeliveries: (webhook, ids) =>
      andThen(
        write(statements.replay, [webhook, idsText(ids)]),
        (replayed) => replayed.map(([id]) => String(id)),
      ),

    pruneDeliveries: () =>
      andThen(
        write(statements.advance),
        () => andThen(write(statements.prune), (pruned) => pruned.map(prunedFormat.read)),
      ),
  }
}

function newestFirst(a: Delivery, b: Delivery): number {
  return b.createdAt - a.createdAt || compareCodePoints(b.id, a.id)
}

/** Applies a change to a webhook. Its audit record has no secrets, and `failingSince` does not count as a change. */
export function changeWebhook(
  stored: readonly Webhook[],
  id: string,
  type: WebhookChangeType,
  context: AuditContext,
  change: WebhookEdit,
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

/** The result as a database can store it: errors come from other servers. */
function storableResult(result: DeliveryResult): DeliveryResult {
  const lastError = result.lastError?.slice(0, 500).toWellFormed().replaceAll('\0', '')
  return { ...result, retryMs: Math.round(result.retryMs), lastError }
}
