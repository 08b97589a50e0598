/** The receiving end of webhooks: signatures that the service makes, and the types of what it sends. */
import t from 'tap'
import { verifyWebhook, type WebhookEvent, type WireRecord } from '../../adapters/client/mod.ts'
import { createWebhookSecret, signWebhook } from '../../adapters/webhooks/secrets.ts'
import { keyJson, partnerJson, signupJson, webhookJson } from '../../core/admin/record-json.ts'
import type { Key, Partner } from '../../core/model.ts'
import type { Signup } from '../../core/ports/signups.ts'
import type { Webhook } from '../../core/ports/webhooks.ts'

const secret = createWebhookSecret()
const other = createWebhookSecret()
const body =
  '{"type":"signup.created","timestamp":"2026-11-20T09:00:00.123Z","data":{"email":"jäne@example.com"}}'
const now = Math.floor(Date.now() / 1000)

/** The headers of a delivery. */
function deliver(secrets: readonly string[], at = now, signed = body) {
  return {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(at),
    'webhook-signature': signWebhook(secrets, 'msg_1', at, signed),
  }
}

t.test('a delivery of the service is verified', async (t) => {
  const event = await verifyWebhook(secret, deliver([secret]), body)
  t.strictSame(event, { id: 'msg_1', ...JSON.parse(body) })
  // The union is discriminated by `type`.
  t.equal(event.type === 'signup.created' && event.data.email, 'jäne@example.com')
  const headers = deliver([other, secret])
  for (
    const given of [headers, new Headers(headers), {
      'Webhook-Id': 'msg_1',
      ...headers,
      'webhook-id': undefined,
    }]
  ) {
    const fields = given as Parameters<typeof verifyWebhook>[1]
    t.equal((await verifyWebhook(secret, fields, body)).id, 'msg_1')
  }
  for (const given of [[other, secret], ` ${secret}\n`]) {
    t.ok(await verifyWebhook(given, deliver([secret]), body))
  }
  t.ok(await verifyWebhook(secret, deliver([secret]), new TextEncoder().encode(body)))
  for (const at of [now - 290, now + 290]) t.ok(await verifyWebhook(secret, deliver([secret], at), body))
})

t.test('the body is hashed once, however many signatures a stranger sends', async (t) => {
  const { subtle } = crypto
  const calls = (['sign', 'verify'] as const).map((name) => t.capture(subtle, name, subtle[name]))
  const good = deliver([secret])
  const many = `${deliver([other])['webhook-signature']} `.repeat(300)
  await t.rejects(verifyWebhook(secret, { ...good, 'webhook-signature': many }, body))
  t.ok(await verifyWebhook(secret, { ...good, 'webhook-signature': many + good['webhook-signature'] }, body))
  t.equal(calls.flatMap((each) => each()).length, 2)
})

t.test('other deliveries are refused', async (t) => {
  const good = deliver([secret])
  const mac = good['webhook-signature'].slice(3)
  const mismatch = /^No signature matches/
  const cases: readonly (readonly [name: string, headers: object, message: RegExp, body?: string])[] = [
    ['another secret', deliver([other]), mismatch],
    ['another body', good, mismatch, `${body} `],
    ['another id', { ...good, 'webhook-id': 'msg_2' }, mismatch],
    ['another time', { ...good, 'webhook-timestamp': String(now + 1) }, mismatch],
    ['another version', { ...good, 'webhook-signature': `v1a,${mac}` }, mismatch],
    ['a part', { ...good, 'webhook-signature': `v1,${mac.slice(0, -4)}` }, mismatch],
    ['no Base64', { ...good, 'webhook-signature': `v1,${'_'.repeat(43)}=` }, mismatch],
    ['an old one', deliver([secret], now - 310), /^webhook-timestamp is not within five minutes/],
    ['one of the future', deliver([secret], now + 310), /^webhook-timestamp is not within five minutes/],
    ['no event', deliver([secret], now, '[]'), /^The body is not an event/, '[]'],
    ...['id', 'timestamp', 'signature'].map((part) =>
      [
        part,
        { ...good, [`webhook-${part}`]: undefined },
        new RegExp(`^The header webhook-${part} is missing`),
      ] as const
    ),
  ]
  for (const [name, headers, message, sent = body] of cases) {
    const fields = headers as Parameters<typeof verifyWebhook>[1]
    await t.rejects(verifyWebhook(secret, fields, sent), { name: 'WebhookVerificationError', message }, name)
  }
  for (const wrong of ['', 'whsec_', secret.slice(6), `${secret}A`, secret.slice(0, -1), 'whsec_é']) {
    const error = await verifyWebhook(wrong, good, body).catch((error) => error)
    t.match(error, { name: 'TypeError', message: 'secret must be whsec_ and Base64.' })
  }
  await t.rejects(verifyWebhook([], good, body), { message: mismatch })
})

type Names<Row> = Readonly<Record<keyof Row, true>>
type DataOf<Type extends WebhookEvent['type']> = Extract<WebhookEvent, { readonly type: Type }>['data']

t.test('the types have the members that the service sends', (t) => {
  const signup: Names<WireRecord<Signup>> = {
    id: true,
    partner: true,
    key_id: true,
    environment: true,
    created_at: true,
    email: true,
    name: true,
    company: true,
    country: true,
    plan: true,
    profile: true,
    locale: true,
    message: true,
    consent_at: true,
    metadata: true,
  }
  t.strictSame(Object.keys(signupJson({} as Signup)).sort(), Object.keys(signup).sort())
  const change = { actor: true, changed: true } as const
  const partner: Names<DataOf<'partner.updated'>> = {
    slug: true,
    name: true,
    state: true,
    modules: true,
    limits: true,
    contact: true,
    tags: true,
    external_id: true,
    self_service: true,
    created_at: true,
    ...change,
  }
  const sent = [...Object.keys(partnerJson({} as Partner)), ...Object.keys(change)]
  t.strictSame(sent.filter((name) => name !== 'note').sort(), Object.keys(partner).sort())
  const key: Names<DataOf<'scope.granted'>> = {
    id: true,
    partner: true,
    name: true,
    environment: true,
    hint: true,
    state: true,
    scopes: true,
    allow: true,
    limits: true,
    owner: true,
    tags: true,
    created_at: true,
    expires_at: true,
    rotation: true,
    last_used_at: true,
    scope: true,
    ...change,
  }
  const keySent = [...Object.keys(keyJson({} as Key, 0)), 'scope', ...Object.keys(change)]
  t.strictSame(keySent.sort(), Object.keys(key).sort())
  const webhook: Names<DataOf<'webhook.disabled'>> = {
    id: true,
    events: true,
    partner: true,
    state: true,
    created_at: true,
    failing_since: true,
    old_secret_expires_at: true,
    pending_removed_at: true,
    ...change,
  }
  const webhookSent = [
    ...Object.keys(webhookJson({ secrets: [] } as unknown as Webhook)),
    ...Object.keys(change),
  ]
  t.strictSame(webhookSent.filter((name) => name !== 'url').sort(), Object.keys(webhook).sort())
  t.end()
})
