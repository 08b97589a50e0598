/** A store with rows in every table, for tests of copies. */
import { createHmac } from 'node:crypto'
import { createClaim } from '../../../core/admin/claims.ts'
import { createModuleAdministration } from '../../../core/admin/modules.ts'
import { utcDay } from '../../../core/lib/time.ts'
import type { Store } from '../../../core/ports/store.ts'
import type { Webhook } from '../../../core/ports/webhooks.ts'
import { INDUSTRIES, profiles } from '../../bench/profiles.ts'
import { canary, serveStore } from '../../support/partner-service.ts'
import { usageCount } from '../../contract/store/samples.ts'
import type { World } from '../../support/world.ts'

const day = 86_400_000

/** A signup with an idempotency key, which tests send again. */
export const REPEATED = {
  idempotencyKey: 'once and \\again',
  body: {
    partner: 'demo',
    email: 'ada@example.org',
    name: 'Ada Lovelace',
    country: 'FR',
    plan: 'also-second',
  },
} as const

/** An imported key. */
export const IMPORTED = 'tok_made-by-another-system'

/** Rows of a table that does not fit into one page of a copy. */
const MANY_ROWS = 520

/** Fills an empty store as operators and partners do. Profiles and counts of requests have `MANY_ROWS` and more. */
export async function fillStore(store: Store): Promise<World> {
  const { api, request, post, world } = await serveStore(store)
  const { keys, keyRing, partners } = world
  const now = Date.now()
  const actor = 'Grace “the operator”'

  // Parents after their children.
  const nested = ['zzz', 'mmm', 'aaa'].map((slug, index, slugs) => ({
    slug,
    name: `Nested ${slug}`,
    parentSlug: slugs[index - 1],
  }))
  await store.importContent('industries', [...nested, ...INDUSTRIES], { now, actor })
  await store.importContent('profiles', [...profiles(MANY_ROWS)], { now, actor })
  await store.removeContent('profiles', ['bare-third'], { at: now, actor })

  await partners.update('kiosk', {
    name: 'Kiosk “am Eck” 😀',
    contact: 'kiosk@example.com',
    tags: ['eu', 'a_b'],
    externalId: 'crm “7”',
    note: 'é',
    selfService: ['revoke'],
    limits: { set: { verify: { quota: 5, windowSeconds: 60 }, key: { quota: 7, windowSeconds: 60 } } },
  })
  const orders = { name: 'orders', scope: 'read:orders', feature: 'Orders' }
  const modules = createModuleAdministration(store, { actor })
  await modules.define(orders)
  // A database may sort text as in a language, which ignores the hyphen.
  for (const name of ['a-z', 'ab']) await modules.define({ name, scope: `read:${name}`, feature: name })
  await partners.activate('demo', ['orders'])
  await keyRing.grant(keys['demo local'].id, ['read:orders'])
  await partners.create({ slug: 'gone', name: 'Gone', modules: ['widget'] })
  await keyRing.issue({ partner: 'gone', name: 'Gone, too', environment: 'live' })
  await partners.remove('gone')
  await keyRing.rotate((await world.issue({ expiresAt: now + day })).id, { overlapMs: 0 })
  await keyRing.update(keys['demo local'].id, {
    owner: 'Büro',
    tags: ['shop'],
    limits: { set: { signup: { quota: 0, windowSeconds: 1 } } },
  })

  const secret = new TextEncoder().encode('the secret of another system')
  const digest = createHmac('sha256', secret).update(IMPORTED.slice(4)).digest('hex')
  await world.importKeys([{ partner: 'demo', name: 'Imported', digest }], {
    algorithm: 'hmac-sha256',
    prefix: 'tok_',
    secret,
  })

  const hook = {
    id: 'whk_00000000000000000001',
    url: 'https://hooks.example/“x”',
    events: ['signup.created', 'key.issued'],
    partner: 'demo',
    state: 'active',
    createdAt: now,
    secrets: [{ sealed: 'sealed', expiresAt: undefined }, { sealed: 'older', expiresAt: now + day }],
    failingSince: undefined,
  } satisfies Webhook
  for (const name of ['Offered ñ', 'Also offered']) {
    const newKey = { partner: 'acme', name, environment: 'live' } as const
    await createClaim(store, { actor }, newKey, 86_400_000)
  }
  await store.webhooks.changeWebhook(hook.id, 'webhook.created', { at: now, actor }, () => hook)

  const { body, idempotencyKey } = REPEATED
  const once = { headers: { 'idempotency-key': idempotencyKey } }
  const signups = '/partner/signups'
  await post(signups, body, once)
  await post(signups, body, { key: 'demo test', ...once })
  await post(signups, { ...body, partner: 'acme' }, { key: 'acme full' })
  await post(signups, {
    partner: 'demo',
    email: 'ada@example.org',
    name: 'Ada',
    company: 'Łódź & Söhne “Ltd.”',
    message: 'Line one\nline two\t\\ "quoted" \u2028 \u{1f600}',
    metadata: { b: '2', a: 'é', 1: 'a name that objects sort' },
    locale: 'fr',
    profile: 'bare',
    consent_at: '2026-01-01T00:00:00.000Z',
  })
  // Of three, one is settled, and one is leased.
  const [{ webhook, id } = { webhook: '', id: '' }] = await store.webhooks.leaseDeliveries(hook.id, 2, day)
  const failed = { state: 'failed', retryMs: 0, lastStatus: 500, lastError: 'Łódź “é”' } as const
  await store.webhooks.settleDeliveries([{ webhook, id, ...failed }])
  const before = now - 3 * day
  await store.createSignup(canary({ world }, { createdAt: before, plan: 'a-plan-that-was', country: 'DE' }), {
    key: 'long over',
    fingerprint: '0'.repeat(64),
    expiresAt: before + day,
  })
  const counts = Array.from({ length: MANY_ROWS }, (_, index) =>
    usageCount({
      partner: 'demo',
      keyId: keys['demo full'].id,
      day: utcDay(now - day * (1 + index % 20)),
      endpoint: `endpoint-${index}`,
      requests: 1 + index,
      errors: index % 3,
    }))
  await store.recordUsage(counts, 'counts')
  await request('/public/profiles?partner=demo&limit=1')
  await request('/public/profiles/nothing-there?partner=demo')
  await api.close()
  return world
}
