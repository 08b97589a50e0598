/** The functions by which programs administer webhooks; the commands use them, too: test/cli/webhooks.test.ts. */
import t from 'tap'
import { createWebhookAdministration, importWebhookKey } from '../../adapters/webhooks/deliverer.ts'
import { openSecrets } from '../../adapters/webhooks/secrets.ts'
import { AdminError, type AdminErrorCode } from '../../core/admin/error.ts'
import type { Store } from '../../core/ports/store.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createPartner, PARTNER } from '../support/partner.ts'

const key = await importWebhookKey(Buffer.alloc(32, 7).toString('base64'))
const refused = (code: AdminErrorCode) => ({ constructor: AdminError, code })

t.test('a webhook is created, changed, disabled, rotated and removed, with an audit entry for each', async (t) => {
  const store = await openMemoryStore()
  await createPartner(store)
  const webhooks = createWebhookAdministration(store, { actor: 'shop' }, { key })
  const { webhook, secret } = await webhooks.create({
    url: 'https://hooks.example',
    events: ['signup.created'],
    partner: PARTNER,
  })
  t.match(webhook, { id: /^whk_/, url: 'https://hooks.example/', state: 'active', partner: PARTNER })
  t.strictSame(await openSecrets(key, webhook, Date.now()), [secret])
  t.match(await webhooks.list(), [{ id: webhook.id, partner: PARTNER }])

  const { id } = webhook
  t.match(await webhooks.update(id, { events: ['key.issued', 'key.issued'] }), { events: ['key.issued'] })
  t.match(
    await webhooks.update(id, { events: ['key.issued'] }),
    { url: 'https://hooks.example/' },
    'no change',
  )
  t.match(await webhooks.disable(id), { state: 'disabled' })
  t.match(await webhooks.enable(id), { state: 'active' })
  const rotated = await webhooks.rotateSecret(id)
  t.strictSame(await openSecrets(key, rotated.webhook, Date.now()), [rotated.secret, secret])
  const replaced = await webhooks.rotateSecret(id, { overlapMs: 0 })
  t.strictSame(await openSecrets(key, replaced.webhook, Date.now()), [replaced.secret])
  t.match(await webhooks.remove(id), { id })
  t.strictSame(await webhooks.list(), [])

  const entries = (await store.listAudit(0, 99)).filter(({ type }) => type.startsWith('webhook.'))
  t.strictSame(entries.map(({ type }) => type.slice(8)), [
    'created',
    'updated',
    'disabled',
    'enabled',
    'rotated',
    'rotated',
    'removed',
  ])
  t.ok(entries.every(({ actor }) => actor === 'shop'))
})

t.test('what is refused', async (t) => {
  const store = await openMemoryStore()
  const { partners } = await createPartner(store)
  const webhooks = createWebhookAdministration(store, { actor: 'shop' }, { key })
  const events = ['key.issued'] as const
  const urls = [
    'http://hooks.example',
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://a:b@hooks.example',
    'https://a.example/#b',
    'a',
  ]
  for (const url of urls) await t.rejects(webhooks.create({ url, events }), refused('invalid_url'), url)
  const url = 'https://hooks.example/'
  await t.rejects(webhooks.create({ url, events: [] }), refused('invalid_event'))
  await t.rejects(webhooks.create({ url, events: ['key.lost' as never] }), refused('invalid_event'))
  await t.rejects(webhooks.create({ url, events, partner: 'none' }), refused('partner_not_found'))
  await partners.remove(PARTNER)
  await t.rejects(webhooks.create({ url, events, partner: PARTNER }), refused('partner_removed'))
  for (const method of ['show', 'enable', 'disable', 'remove', 'rotateSecret'] as const) {
    const call = (): Promise<unknown> => webhooks[method]('whk_none')
    await t.rejects(call, refused('webhook_not_found'), method)
  }
  const without = createWebhookAdministration(store, { actor: 'shop' })
  await t.rejects(without.create({ url, events }), TypeError)

  const { webhook: { id } } = await webhooks.create({ url, events })
  for (let count = 0; count < 3; count++) await webhooks.rotateSecret(id)
  await t.rejects(webhooks.rotateSecret(id), refused('too_many_secrets'))

  const anywhere = createWebhookAdministration(store, { actor: 'shop' }, { key, allowPrivate: true })
  await t.rejects(anywhere.update(id, { url: 'ftp://hooks.example' }), refused('invalid_url'))
  t.match(await anywhere.update(id, { url: 'http://127.0.0.1:8080/a' }), { url: 'http://127.0.0.1:8080/a' })
})

t.test('what happens to the webhook or its partner meanwhile', async (t) => {
  const store = await openMemoryStore()
  const { partners } = await createPartner(store)
  const plain = createWebhookAdministration(store, { actor: 'other' }, { key })
  let meanwhile = (): Promise<unknown> | undefined => undefined
  const changeWebhook: Store['webhooks']['changeWebhook'] = async (...change) => {
    await meanwhile()
    meanwhile = () => undefined
    return await store.webhooks.changeWebhook(...change)
  }
  const racing = { ...store, webhooks: { ...store.webhooks, changeWebhook } }
  const webhooks = createWebhookAdministration(racing, { actor: 'shop' }, { key })
  const created = { url: 'https://hooks.example', events: ['key.issued'], partner: PARTNER } as const
  const calls: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
    update: (id) => webhooks.update(id, { events: ['key.revoked'] }),
    disable: webhooks.disable,
    enable: webhooks.enable,
    rotateSecret: webhooks.rotateSecret,
    remove: webhooks.remove,
  }
  for (const [name, call] of Object.entries(calls)) {
    const { webhook: { id } } = await plain.create(created)
    meanwhile = () => plain.remove(id)
    await t.rejects(call(id), refused('webhook_not_found'), `${name}: it was removed`)
  }
  const { webhook: { id } } = await plain.create(created)
  await plain.disable(id)
  meanwhile = () => partners.remove(PARTNER)
  await t.rejects(webhooks.enable(id), refused('partner_removed'), 'enable: its partner was removed')
  t.match(await plain.list(), [{ id, state: 'disabled' }])
})

t.test('the secret of a webhook is not lost when the store fails after its creation', async (t) => {
  const store = await openMemoryStore()
  await createPartner(store)
  let reads = 0
  const failing: Store = {
    ...store,
    findPartner(slug) {
      if (++reads > 1) throw new Error('The store is gone.')
      return store.findPartner(slug)
    },
  }
  const { webhook, secret } = await createWebhookAdministration(failing, { actor: 'shop' }, { key })
    .create({ url: 'https://hooks.example/', events: ['key.issued'], partner: PARTNER })
  const [stored] = await store.webhooks.listWebhooks()
  t.equal(stored?.id, webhook.id)
  t.strictSame(await openSecrets(key, stored!, Date.now()), [secret])
})

t.test('a webhook that is created while its partner is removed delivers nothing', async (t) => {
  const store = await openMemoryStore()
  const { partners } = await createPartner(store)
  const changeWebhook: Store['webhooks']['changeWebhook'] = async (id, type, ...change) => {
    if (type === 'webhook.created') await partners.remove(PARTNER)
    return await store.webhooks.changeWebhook(id, type, ...change)
  }
  const racing = { ...store, webhooks: { ...store.webhooks, changeWebhook } }
  const webhooks = createWebhookAdministration(racing, { actor: 'shop' }, { key })
  const created = { url: 'https://hooks.example', events: ['key.issued'], partner: PARTNER } as const
  await t.rejects(webhooks.create(created), refused('partner_removed'))
  t.match(await webhooks.list(), [{ state: 'disabled' }])
})
