/** The webhooks of the OpenAPI document describe the events that changes, signups and the end of keys cause. */
import t from 'tap'
import { createPartnerApi } from '../../core/api.ts'
import { createDocument } from '../../core/openapi/document.ts'
import { type Webhook, WEBHOOK_EVENT_TYPES } from '../../core/ports/webhooks.ts'
import { ROUTES } from '../../core/routes/router.ts'
import { resolveSettings } from '../../core/settings.ts'
import { enqueueExpiring } from '../../core/webhooks/events.ts'
import { until } from '../postgres/until.ts'
import { CLIENT, compile } from '../support/compile.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { resolve, validatorFor } from '../support/openapi-schemas.ts'
import { fillWorld } from '../support/world.ts'

const made = await createDocument(ROUTES, resolveSettings({}))
const webhooks = Object.entries(made.webhooks)
const schemaOf = (type: string) => made.webhooks[type]!.post.requestBody.content['application/json'].schema

/** Deviations of an event from its schema: members that it does not describe, too. */
function mismatches(event: { readonly type: string; readonly data: object }): string[] {
  const schema = schemaOf(event.type)
  const { properties = {} } = resolve(schema.properties.data, made)
  const unknown = Object.keys(event.data).filter((name) => !Object.hasOwn(properties, name))
  return [...validatorFor(made)(schema, event), ...unknown.map((name) => `${name} is not described`)]
}

/** A module that assigns each event to the type of the client. */
function assignEvents(payloads: readonly string[]): string {
  const lines = payloads.map((payload, index) =>
    `export const e${index}: WebhookEvent = { id: '', ...${payload} }`
  )
  return [`import type { WebhookEvent } from ${JSON.stringify(CLIENT)}`, ...lines].join('\n')
}

t.test('every type of event is a webhook with a valid example', (t) => {
  t.strictSame(webhooks.map(([type]) => type).sort(), [...WEBHOOK_EVENT_TYPES].sort())
  for (const [type, { post }] of webhooks) {
    const { example } = post.requestBody.content['application/json']
    t.equal(example.type, type)
    t.strictSame(mismatches(example), [], type)
  }
  const wrong = mismatches({ type: 'key.revoked', data: { secret: '' } }).join()
  t.match(wrong, /required property 'timestamp'.*secret is not described/, 'the check finds deviations')
  t.end()
})

t.test('the events of a store are as described', async (t) => {
  const store = await openMemoryStore()
  const stamp = { actor: 'operator', at: Date.now() }
  const hook = (id: string): Webhook => ({
    id,
    url: 'https://hooks.example/',
    events: WEBHOOK_EVENT_TYPES,
    partner: undefined,
    state: 'active',
    createdAt: stamp.at,
    secrets: [],
    failingSince: undefined,
  })
  const change = (one: Webhook, type: 'webhook.created' | 'webhook.disabled') =>
    store.webhooks.changeWebhook(one.id, type, stamp, () => one)
  await change(hook('whk_1'), 'webhook.created')
  await change(hook('whk_2'), 'webhook.created')
  const { keyRing, partners, keys, issue } = await fillWorld(store)
  const tags = ['a']
  await change({ ...hook('whk_2'), state: 'disabled' }, 'webhook.disabled')
  await partners.update('demo', { tags, contact: 'a@demo.example', selfService: ['rotate'], externalId: '1' })
  await partners.update('demo', { limits: { set: { key: { quota: 7, windowSeconds: 60 } } } })
  await partners.resume('hush')
  await partners.activate('acme', ['banner'])
  await partners.remove('kiosk')
  const { id } = await issue({ scopes: ['read:profiles'], expiresAt: Date.now() + 60_000 })
  await keyRing.update(id, { owner: 'Ada', tags })
  await keyRing.grant(id, ['read:plans'])
  await keyRing.remove(id, ['read:plans'])
  await keyRing.enable(keys['demo disabled'].id)
  await keyRing.rotate(keys['demo profiles'].id)
  await enqueueExpiring(store, Date.now())
  await enqueueExpiring(store, Date.now() + 120_000)
  const api = createPartnerApi({ store }, { maxStalenessMs: 0 })
  t.teardown(() => api.close())
  const send = (more: object) =>
    api.fetch(
      new Request('http://a.example/service/partner/signups', {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${keys['demo full'].text}` },
        body: JSON.stringify({ partner: 'demo', email: 'jane@example.com', name: 'Jane', ...more }),
      }),
    )
  t.equal((await send({})).status, 201)
  t.equal(
    (await send({ country: 'de', consent_at: '2026-11-20T10:00:00+01:00', metadata: { a: 'b' } })).status,
    201,
  )
  await partners.update('demo', {
    limits: { set: { partner: { quota: 5, windowSeconds: 600 }, month: { quota: 9_000 } } },
  })
  for (let sent = 0; sent < 5; sent++) await send({})
  const quotaEvents = async () =>
    (await store.webhooks.listDeliveries('whk_1', undefined, undefined, 1000))
      .filter(({ type }) => type.startsWith('quota.')).length
  await until(async () => await quotaEvents() === 2, 'the events of a quota')
  const deliveries = await store.webhooks.listDeliveries('whk_1', undefined, undefined, 1000)
  const seen = new Set<string>()
  for (const { type, payload } of deliveries) {
    seen.add(type)
    t.strictSame(mismatches(JSON.parse(payload)), [], payload)
  }
  t.strictSame([...seen].sort(), [...WEBHOOK_EVENT_TYPES].sort(), 'all types occurred')
  const errors = compile({
    events: assignEvents(deliveries.map(({ payload }) => payload)),
    wrong: assignEvents(['{"type":"quota.reached","data":{}}']),
  })
  t.strictSame(errors.filter((error) => !error.startsWith('wrong.ts')), [], 'each has its type of the client')
  t.equal(errors.length, 1, 'and the check finds deviations')
})
