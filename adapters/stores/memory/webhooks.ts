import type { AuditContext } from '../../../core/ports/changes.ts'
import {
  type Delivery,
  RETENTION_MS,
  type Webhook,
  type WebhookEvent,
  type WebhookStore,
} from '../../../core/ports/webhooks.ts'
import type { AuditRecord } from '../../../core/audit/records.ts'
import { changeWebhook, MAX_BATCH, MAX_COUNT, newestFirst, storableResult } from '../webhooks.ts'

export function createWebhooks(
  append: (auditRecords: readonly AuditRecord[], context: AuditContext) => void,
) {
  let all: readonly Webhook[] = []
  /** By webhook and id. */
  const deliveries = new Map<string, Delivery>()
  const keyOf = ({ webhook, id }: Pick<Delivery, 'webhook' | 'id'>) => `${webhook} ${id}`
  const set = (delivery: Delivery, change: Partial<Delivery>) =>
    deliveries.set(keyOf(delivery), { ...delivery, ...change })
  const select = (isSelected: (delivery: Delivery) => boolean) => [...deliveries.values()].filter(isSelected)
  const due = (webhook: string) =>
    select((each) => each.webhook === webhook && each.state === 'pending' && each.dueAt <= Date.now())

  const webhooks = {
    listWebhooks: () => all,

    changeWebhook(id, type, context, change) {
      const { result, auditRecords, events } = changeWebhook(all, id, type, context, change)
      if (auditRecords.length === 0) return result
      append(auditRecords, context)
      all = [...all.filter((webhook) => webhook.id !== id), ...(result === undefined ? [] : [result])]
        .sort((a, b) => a.id < b.id ? -1 : 1)
      webhooks.enqueue(events())
      return result
    },

    enqueue(events, only?: string) {
      for (const event of events) {
        const { partner, type } = event
        const isSubscribed = (webhook: Webhook) =>
          webhook.state === 'active' && (webhook.events as readonly string[]).includes(type) &&
          (webhook.partner ?? partner) === partner
        for (const webhook of all) {
          const delivery = { webhook: webhook.id, ...event }
          if (only === undefined ? !isSubscribed(webhook) : only !== webhook.id) continue
          if (deliveries.has(keyOf(delivery))) continue
          const last = { lastStatus: undefined, lastError: undefined }
          set({ ...delivery, state: 'pending', attempts: 0, dueAt: Date.now(), ...last }, {})
        }
      }
    },

    dueWebhooks: () =>
      all.filter(({ state }) => state === 'active')
        .map(({ id }) => ({ id, since: Math.min(...due(id).map(({ dueAt }) => dueAt)) }))
        .filter(({ since }) => since < Infinity).sort((a, b) => a.since - b.since).map(({ id }) => id),

    leaseDeliveries(webhook, limit, leaseMs) {
      if (!all.some(({ id, state }) => id === webhook && state === 'active')) return []
      const leased = due(webhook).sort((a, b) => a.dueAt - b.dueAt).slice(0, limit).sort((a, b) =>
        newestFirst(b, a)
      )
      for (const delivery of leased) set(delivery, { dueAt: Date.now() + leaseMs })
      return leased.map((delivery) => deliveries.get(keyOf(delivery))!)
    },

    settleDeliveries(results) {
      const now = Date.now()
      for (const result of results.map(storableResult)) {
        const { state, retryMs, lastStatus, lastError } = result
        const stored = deliveries.get(keyOf(result))
        if (stored?.state !== 'pending' && (stored?.state !== 'failed' || state !== 'delivered')) continue
        const dueAt = now + (state === 'pending' ? retryMs : 0)
        set(stored, { state, attempts: stored.attempts + 1, dueAt, lastStatus, lastError })
      }
      all = all.map((webhook) => {
        const states = results.filter((result) => result.webhook === webhook.id).map(({ state }) => state)
        const failingSince = states.includes('delivered') ? undefined : webhook.failingSince ?? now
        return states.length === 0 ? webhook : { ...webhook, failingSince }
      })
    },

    listDeliveries: (webhook, state, after, limit) =>
      select((each) => each.webhook === webhook && (state ?? each.state) === each.state)
        .sort(newestFirst)
        .filter((each) => after === undefined || newestFirst(after as Delivery, each) < 0)
        .slice(0, limit),

    countPending: (id) =>
      Math.min(select(({ webhook, state }) => webhook === id && state === 'pending').length, MAX_COUNT),

    replayDeliveries(webhook, ids) {
      const replayed = select((each) => each.webhook === webhook && ids.includes(each.id))
      for (const delivery of replayed) set(delivery, { state: 'pending', attempts: 0, dueAt: Date.now() })
      return replayed.map(({ id }) => id)
    },

    pruneDeliveries() {
      const webhooks = new Map(all.map((webhook) => [webhook.id, webhook]))
      const before = Date.now() - RETENTION_MS
      const pruned = select(({ webhook: id, state, dueAt }) => {
        const webhook = webhooks.get(id)
        return !webhook || (state === 'pending' ? webhook.disabledAt ?? Infinity : dueAt) <= before
      }).slice(0, MAX_BATCH)
      for (const delivery of pruned) deliveries.delete(keyOf(delivery))
      return pruned.map(({ webhook, state }) => ({ webhook, state }))
    },
  } satisfies WebhookStore

  return {
    webhooks,
    /** Without webhooks, the events are not made. */
    addEvents: (events: () => readonly WebhookEvent[]) => all.length > 0 && webhooks.enqueue(events()),
    deleteDeliveries(ids: readonly string[]): number {
      const found = select(({ id }) => ids.includes(id))
      for (const delivery of found) deliveries.delete(keyOf(delivery))
      return found.length
    },
  }
}
