import type { AppliedChanges } from '../admin/change-set.ts'
import { keyJson, partnerJson, signupJson, webhookJson } from '../admin/record-json.ts'
import { endOf } from '../keys/lifecycle.ts'
import type { Sha256 } from '../lib/digest.ts'
import { deriveId, drawId } from '../lib/ids.ts'
import { delay } from '../lib/promise.ts'
import { MS_PER_DAY, rfc3339 } from '../lib/time.ts'
import type { WebAbortSignal } from '../lib/web-globals.ts'
import type { Key, Partner } from '../model.ts'
import type { AuditContext } from '../ports/changes.ts'
import type { Signup } from '../ports/signups.ts'
import { pagesOf, readPartners, type Store } from '../ports/store.ts'
import {
  type Webhook,
  WEBHOOK_EVENT_TYPES,
  type WebhookEvent,
  type WebhookEventType,
} from '../ports/webhooks.ts'

/** An event with the payload of Standard Webhooks, "Payload structure". */
export function createEvent(
  { id, type, partner, createdAt }: Omit<WebhookEvent, 'payload'>,
  data: Readonly<Record<string, unknown>>,
): WebhookEvent {
  const payload = JSON.stringify({ type, timestamp: rfc3339(createdAt), data })
  return { id, type, partner, createdAt, payload }
}

/** The body of a signup bounds it: some 33 KB. */
export function signupEvent(signup: Signup): WebhookEvent {
  const { partner, createdAt } = signup
  const id = `msg_${signup.id.slice(4)}`
  return createEvent({ id, type: 'signup.created', partner, createdAt }, signupJson(signup))
}

/** The events of administrative changes. An imported key has none: it was issued by another system. */
export function changeEvents(
  { auditRecords, partners, keys }: Pick<AppliedChanges, 'auditRecords' | 'partners' | 'keys'>,
  context: AuditContext,
): WebhookEvent[] {
  return auditRecords.flatMap(({ type: change, partner, keyId = '', subject, before, after }) => {
    const type = WEBHOOK_EVENT_TYPES.find((each) => each === change)
    const key = keys.get(keyId)
    if (type === undefined || (type === 'key.issued' && key!.digest.includes(':'))) return []
    const [, part] = /^(module|scope)\./.exec(type) ?? []
    const toJson = (state: unknown) => key ? keyJson(state as Key, context.at) : publicJson(state as Partner)
    const [old, current] = [before, after].map((text) =>
      text === undefined ? undefined : toJson(JSON.parse(text))
    )
    const data = { ...toJson(key ?? partners.get(partner!)), ...part && { [part]: subject } }
    const isChanged = (name: string) => JSON.stringify(old![name]) !== JSON.stringify(current![name])
    const changed = old ? Object.keys(current!).filter(isChanged) : []
    if (type === 'partner.updated') {
      if (subject?.startsWith('contact')) changed.push('contact')
      // Only the note was changed.
      if (changed.length === 0) return []
    }
    return [changeEvent(type, partner, data, changed, context)]
  })
}

/** A partner as JSON, without its note, which is not for the receivers of a partner's webhooks. */
function publicJson(partner: Partner): Readonly<Record<string, unknown>> {
  const { note: _, ...data } = partnerJson(partner)
  return data
}

/** The event that tells other webhooks of a disabled one. It has no URL, which may be a secret of its receiver. */
export function webhookDisabledEvent(webhook: Webhook, context: AuditContext): WebhookEvent {
  const { url: _, ...data } = webhookJson(webhook)
  return changeEvent('webhook.disabled', webhook.partner, data, ['state'], context)
}

function changeEvent(
  type: WebhookEventType,
  partner: string | undefined,
  data: Readonly<Record<string, unknown>>,
  changed: readonly string[],
  { actor, at }: AuditContext,
): WebhookEvent {
  return createEvent({ id: drawId('msg_'), type, partner, createdAt: at }, { ...data, actor, changed })
}

/** Days before the end of a key at which a notice is due; and days after it, if no server has run in between. */
const noticeDays = [3, 14]
const maxExpiredDays = 3

/**
 * The event that is due for a key that ends soon, or has ended. Its id follows from the key, its end and the notice.
 */
export function endEvent(key: Key, { contact, tags }: Partner, now: number, sha256: Sha256): WebhookEvent {
  const end = endOf(key)!
  const isOver = end <= now
  const type = isOver ? 'key.expired' : 'key.expiring'
  const days = isOver ? 0 : noticeDays.find((days) => end - now <= days * MS_PER_DAY)
  const id = deriveId('msg_', sha256(`${type} ${key.id} ${end} ${days}`))
  const change = isOver && { actor: 'partner-api', changed: ['state'] }
  const notice = { ends_at: rfc3339(end), contact: contact ?? null, partner_tags: tags }
  const data = { ...keyJson(key, now), ...notice, ...change }
  return createEvent({ id, type, partner: key.partner, createdAt: isOver ? end : now }, data)
}

/**
 * Enqueues `key.expiring` 14 and 3 days before keys in force expire or their overlap ends, and `key.expired` after
 * that, once however often and on however many servers it is called; again when the end has changed. Call it at least
 * daily.
 */
export async function enqueueExpiring(
  store: Pick<Store, 'listPartners' | 'listKeys' | 'sha256' | 'webhooks'>,
  now: number,
  signal?: WebAbortSignal,
): Promise<void> {
  const webhooks = (await store.webhooks.listWebhooks()).filter(({ state, events }) =>
    state === 'active' && (events.includes('key.expiring') || events.includes('key.expired'))
  )
  if (webhooks.length === 0) return
  const endsBefore = now + Math.max(...noticeDays) * MS_PER_DAY + 1
  const inForceAt = now - maxExpiredDays * MS_PER_DAY
  for await (const each of readPartners(store)) {
    const { slug } = each
    if (!webhooks.some(({ partner = slug }) => partner === slug)) continue
    const filter = { partner: slug, endsBefore, now: inForceAt }
    for await (const page of pagesOf<Key>((after, limit) => store.listKeys(filter, after, limit), 200)) {
      await store.webhooks.enqueue(page.map((key) => endEvent(key, each, now, store.sha256)))
    }
    // With a synchronous store, the server would answer no request during this.
    await delay(1, signal)
  }
}
