import { keyJson, partnerJson, signupJson } from '../admin/record-json.ts'
import { endOf } from '../keys/lifecycle.ts'
import type { Sha256 } from '../lib/digest.ts'
import { deriveId, drawId } from '../lib/ids.ts'
import { delay } from '../lib/promise.ts'
import { pagesOf, readPages } from '../lib/read-pages.ts'
import { MS_PER_DAY, rfc3339 } from '../lib/time.ts'
import type { WebAbortSignal } from '../lib/web.ts'
import type { Key, Partner } from '../model.ts'
import type { AuditEntry } from '../ports/audit.ts'
import type { Signup } from '../ports/signups.ts'
import type { Store } from '../ports/store.ts'
import { WEBHOOK_EVENT_TYPES, type WebhookEvent } from '../ports/webhooks.ts'

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

/** What changes came to: their audit records, and the partners and keys as they are stored. */
interface Changed {
  readonly auditRecords: readonly Pick<AuditEntry, 'type' | 'partner' | 'keyId' | 'subject'>[]
  readonly partners: ReadonlyMap<string, Partner>
  readonly keys: ReadonlyMap<string, Key>
}

/** The events of administrative changes. An imported key has none: it was issued by another system. */
export function changeEvents({ auditRecords, partners, keys }: Changed, at: number): WebhookEvent[] {
  return auditRecords.flatMap(({ type: change, partner, keyId = '', subject }) => {
    const type = WEBHOOK_EVENT_TYPES.find((each) => each === change)
    const key = keys.get(keyId)
    if (type === undefined || (type === 'key.issued' && key!.digest.includes(':'))) return []
    const module = type.startsWith('module.') ? { module: subject } : {}
    const data = key === undefined ? { ...partnerJson(partners.get(partner!)!), ...module } : keyJson(key, at)
    return [createEvent({ id: drawId('msg_'), type, partner, createdAt: at }, data)]
  })
}

const noticeDays = [3, 14]

/** The notice that is due for a key that ends; its id follows from the key, its end and the notice. */
export function expiringEvent(key: Key, now: number, sha256: Sha256): WebhookEvent | undefined {
  const end = endOf(key) ?? Infinity
  const days = noticeDays.find((days) => end - now <= days * MS_PER_DAY)
  if (days === undefined || end <= now) return undefined
  const id = deriveId('msg_', sha256(`key.expiring ${key.id} ${end} ${days}`))
  const head = { id, type: 'key.expiring', partner: key.partner, createdAt: now } as const
  return createEvent(head, { ...keyJson(key, now), ends_at: rfc3339(end) })
}

/**
 * Enqueues `key.expiring` 14 and 3 days before keys in force expire or their overlap ends, once however often and on however
 * many servers it is called; again when the end has changed. Call it at least daily.
 */
export async function enqueueExpiring(
  store: Pick<Store, 'listPartners' | 'listKeys' | 'sha256' | 'webhooks'>,
  now: number,
  signal?: WebAbortSignal,
): Promise<void> {
  const webhooks = (await store.webhooks?.listWebhooks() ?? []).filter(({ state, events }) =>
    state === 'active' && events.includes('key.expiring')
  )
  if (webhooks.length === 0) return
  const endsBefore = now + Math.max(...noticeDays) * MS_PER_DAY + 1
  for await (const { slug } of readPages<Partner>((after, limit) => store.listPartners(after?.slug, limit))) {
    if (!webhooks.some(({ partner = slug }) => partner === slug)) continue
    const keys = pagesOf<Key>(
      (after, limit) => store.listKeys({ partner: slug, endsBefore, now }, after, limit),
      200,
    )
    for await (const page of keys) {
      await store.webhooks!.enqueue(page.flatMap((key) => expiringEvent(key, now, store.sha256) ?? []))
    }
    // A synchronous store would not let the server answer requests meanwhile.
    await delay(1, signal)
  }
}
