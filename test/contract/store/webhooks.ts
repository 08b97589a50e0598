import { createEvent, enqueueExpiring, signupEvent } from '../../../core/webhooks/events.ts'
import { verifyAuditLog } from '../../../core/audit/verify.ts'
import type { Store } from '../../../core/ports/store.ts'
import type {
  Delivery,
  DeliveryResult,
  Webhook,
  WebhookEvent,
  WebhookStore,
} from '../../../core/ports/webhooks.ts'
import { MAX_WEBHOOKS, WEBHOOK_EVENT_TYPES } from '../../../core/ports/webhooks.ts'
import { apply, createPartners, DAY, fails, key, partner, reservation, signup, stamp, T0 } from './samples.ts'
import type { Check } from './suites.ts'

function webhook(id: string, more: Partial<Webhook> = {}): Webhook {
  return {
    id: `whk_${id.padStart(20, '0')}`,
    url: 'https://hooks.example/“x”?a=b',
    events: WEBHOOK_EVENT_TYPES,
    partner: undefined,
    state: 'active',
    createdAt: T0,
    secrets: [{ sealed: 'v1.sealed', expiresAt: undefined }, { sealed: 'v1.older', expiresAt: T0 + DAY }],
    failingSince: undefined,
    // Of webhooks that are created.
    disabledAt: more.state === 'disabled' ? stamp.at : undefined,
    ...more,
  }
}

function test(id: string, more: Partial<Omit<WebhookEvent, 'payload'>> = {}): WebhookEvent {
  const head = { id: `msg_${id.padStart(20, '0')}`, type: 'webhook.test', partner: undefined } as const
  return createEvent({ ...head, createdAt: T0, ...more }, { text: '\u0000 \ud800 “x”' })
}

const outbox = (store: Store): WebhookStore => store.webhooks

async function create(store: Store, ...webhooks: Webhook[]): Promise<void> {
  for (const one of webhooks) await outbox(store).changeWebhook(one.id, 'webhook.created', stamp, () => one)
}

/** The deliveries of a webhook, newest first. */
const list = async (store: Store, { id }: Webhook, state?: Delivery['state']) =>
  await outbox(store).listDeliveries(id, state, undefined, 1000)

/** What the deliveries of a webhook say, oldest first. */
const told = async (store: Store, webhook: Webhook) =>
  (await list(store, webhook)).map(({ payload }) => JSON.parse(payload)).reverse()

const lease = async (store: Store, { id }: Webhook, limit = 500, leaseMs = 60_000) =>
  await outbox(store).leaseDeliveries(id, limit, leaseMs)

const settled = ({ webhook, id }: Delivery, more: Partial<DeliveryResult> = {}): DeliveryResult => ({
  webhook,
  id,
  state: 'delivered',
  retryMs: 0,
  lastStatus: 204,
  lastError: undefined,
  ...more,
})

const failed = (delivery: Delivery, more: Partial<DeliveryResult> = {}) =>
  settled(delivery, {
    state: 'failed',
    lastStatus: undefined,
    lastError: 'ECONNREFUSED \u0000\ud800',
    ...more,
  })

const settle = async (store: Store, ...results: DeliveryResult[]) =>
  await outbox(store).settleDeliveries(results)

const ids = (deliveries: readonly WebhookEvent[]) => deliveries.map(({ id }) => Number(id.slice(4)))

const findWebhook = async (store: Store, { id }: Webhook) =>
  (await outbox(store).listWebhooks()).find((each) => each.id === id)

/** Webhooks, and the deliveries that tell them of changes. */
export async function webhooksContract(check: Check): Promise<void> {
  await check(
    'webhooks are created, changed and removed, in the audit log and without a revision',
    async (t, store) => {
      const before = await store.revision()
      const first = webhook('1', { partner: 'acme' })
      const second = webhook('2', { state: 'disabled', events: ['key.issued'] })
      await create(store, second, first)
      t.strictSame(await outbox(store).listWebhooks(), [first, second])
      const changes = { state: 'active', failingSince: T0, secrets: [first.secrets[1]!] } as const
      const changed = { ...second, ...changes, disabledAt: undefined }
      const seen: unknown[] = []
      const returned = await outbox(store).changeWebhook(second.id, 'webhook.enabled', stamp, (found) => {
        seen.push(found)
        return { ...second, ...changes }
      })
      t.strictSame([returned, seen.at(-1)], [changed, second])
      await outbox(store).changeWebhook(first.id, 'webhook.updated', stamp, (found) => found)
      await outbox(store).changeWebhook('whk_none', 'webhook.removed', stamp, () => undefined)
      const refused = await fails(async () =>
        await outbox(store).changeWebhook(first.id, 'webhook.updated', stamp, () => {
          throw new Error('no')
        })
      )
      t.ok(refused, 'nothing is changed')
      await outbox(store).changeWebhook(first.id, 'webhook.removed', stamp, () => undefined)
      t.strictSame(await outbox(store).listWebhooks(), [changed])
      t.strictSame(await store.revision(), before)

      const entries = await store.listAudit(0, 100)
      t.strictSame(
        entries.map(({ type, subject, partner, keyId }) => [type, subject, partner, keyId]),
        [
          ['webhook.created', second.id, undefined, undefined],
          ['webhook.created', first.id, 'acme', undefined],
          ['webhook.enabled', second.id, undefined, undefined],
          ['webhook.removed', first.id, 'acme', undefined],
        ],
      )
      t.ok(!JSON.stringify(entries).includes('v1.'), 'secrets are not audited')
      t.strictSame([JSON.parse(entries[2]!.before!).state, JSON.parse(entries[2]!.after!).state], [
        'disabled',
        'active',
      ])
      t.strictSame([entries[0]!.before, entries[3]!.after], [undefined, undefined])
      await createPartners(store, 'acme')
      const { brokenAt, differences } = await verifyAuditLog(store)
      t.strictSame([brokenAt, differences], [undefined, []])
    },
  )

  await check(`a store has at most ${MAX_WEBHOOKS} webhooks`, async (t, store) => {
    const all = Array.from({ length: MAX_WEBHOOKS }, (_, index) => webhook(String(index)))
    await create(store, ...all)
    t.ok(await fails(() => create(store, webhook('more'))), 'no more')
    await create(store, { ...all[0]!, url: 'https://other.example/' })
    t.equal((await outbox(store).listWebhooks()).length, MAX_WEBHOOKS)
  })

  await check('a signup is told of once, to each active webhook that asked for it', async (t, store) => {
    await createPartners(store, 'acme', 'globex')
    await apply(store, { type: 'key.issued', key: key() })
    const acme = webhook('1', { partner: 'acme', events: ['key.issued', 'signup.created'] })
    const every = webhook('2')
    const others = [
      webhook('3', { partner: 'globex' }),
      webhook('4', { state: 'disabled' }),
      webhook('5', { events: WEBHOOK_EVENT_TYPES.filter((type) => type !== 'signup.created') }),
    ]
    await create(store, acme, every, ...others)
    const first = signup('1', { name: 'Ada \u{1f600} \u0000 \ud800', metadata: { a: 'b' }, consentAt: 0 })
    await store.createSignup(first, reservation())
    await store.createSignup(signup('2'), reservation())
    await store.createSignup(signup('3'), reservation({ fingerprint: 'e'.repeat(64) }))
    t.ok(await fails(async () => await store.createSignup(first, undefined)), 'it exists')
    for (const one of [acme, every]) {
      const [delivery, ...more] = await list(store, one)
      const { dueAt, ...rest } = delivery!
      const pending = {
        webhook: one.id,
        state: 'pending',
        attempts: 0,
        lastStatus: undefined,
        lastError: undefined,
      }
      t.strictSame([rest, more], [{ ...pending, ...signupEvent(first) } as unknown, []])
      t.equal(await outbox(store).countPending(delivery!.webhook), 1)
      t.ok(Math.abs(Date.now() - dueAt) < 60_000, 'due at once')
    }
    for (const one of others) t.strictSame(await list(store, one), [])
    t.equal(JSON.parse((await list(store, every))[0]!.payload).data.key_id, first.keyId)
    t.strictSame(await outbox(store).dueWebhooks(), [acme.id, every.id])
  })

  await check('of signups sent at once, each that is stored has one event', async (t, store) => {
    await createPartners(store, 'acme')
    await apply(store, { type: 'key.issued', key: key() })
    const every = webhook('1')
    await create(store, every)
    await Promise.allSettled(Array.from({ length: 40 }, async (_, index) => {
      const id = `${index}`
      // Others have an unknown key, the idempotency key of the next one, or the id of the first.
      if (index % 4 === 1) {
        return await store.createSignup(signup(id, { keyId: 'nothing' }), reservation({ key: id }))
      }
      if (index % 4 === 2) return await store.createSignup(signup(id), reservation({ key: `${index + 1}` }))
      const sent = signup(id, { name: `“${id}” \\ "`, metadata: { index: id } })
      await store.createSignup(
        index % 8 === 4 ? { ...sent, id: signup('0').id } : sent,
        reservation({ key: id }),
      )
    }))
    const stored = await store.listSignups(undefined, undefined, 100)
    t.equal(stored.length, 15)
    const events = (await list(store, every)).map(({ id, payload }) => ({ id, payload }))
    const byId = (a: { readonly id: string }, b: { readonly id: string }) => a.id < b.id ? -1 : 1
    t.strictSame(
      events.sort(byId),
      stored.map(signupEvent).map(({ id, payload }) => ({ id, payload })).sort(byId),
    )
  })

  await check('changes of keys, partners and modules are told of', async (t, store) => {
    const acme = webhook('1', { partner: 'acme' })
    const every = webhook('2')
    await createPartners(store, 'acme', 'globex')
    await create(store, acme, every)
    const issue = (id: string, partner: string, more = {}) =>
      ({ type: 'key.issued', key: key({ id, partner, ...more }) }) as const
    await apply(store, issue('one', 'acme'), issue('two', 'globex'), {
      ...issue('imported', 'acme', { digest: `${'0'.repeat(16)}:${'a'.repeat(64)}` }),
      scheme: { id: '0'.repeat(16), algorithm: 'sha256', prefix: '', secret: '' },
    })
    await apply(store, { type: 'key.updated', ...key({ id: 'one', name: 'Renamed' }) })
    await apply(store, { type: 'scope.granted', id: 'one', scope: 'read:profiles' })
    await apply(store, issue('next', 'acme'), {
      type: 'key.rotated',
      id: 'one',
      successorId: 'next',
      retiresAt: T0 + DAY,
    })
    await apply(store, { type: 'module.activated', slug: 'acme', module: 'widget' })
    await apply(store, { type: 'module.deactivated', slug: 'acme', module: 'widget' })
    await apply(store, { type: 'partner.suspended', slug: 'acme' }, {
      type: 'partner.resumed',
      slug: 'globex',
    })
    await apply(store, { type: 'partner.removed', slug: 'acme' })
    t.equal(await store.apply([{ type: 'key.revoked', id: 'two' }], 'another revision', stamp), false)

    const events = await told(store, acme)
    const summary = (found: readonly { type: string; data: Readonly<Record<string, string>> }[]) =>
      found.map(({ type, data }) =>
        [type, data['id'] ?? data['slug'], data['module'] ?? data['scope']].join(' ').trim()
      )
        .sort()
    const expected = [
      'key.issued next',
      'key.issued one',
      'key.revoked imported',
      'key.revoked next',
      'key.revoked one',
      'key.rotated one',
      'key.updated one',
      'module.activated acme widget',
      'module.deactivated acme widget',
      'partner.removed acme',
      'partner.suspended acme',
      'scope.granted one read:profiles',
    ]
    t.strictSame(summary(events), expected)
    const both = [...expected, 'key.issued two', 'partner.resumed globex'].sort()
    t.strictSame(summary(await told(store, every)), both)
    t.strictSame(events.find(({ type }) => type === 'key.rotated'), {
      type: 'key.rotated',
      timestamp: '2026-01-01T00:00:00.000Z',
      data: {
        id: 'one',
        partner: 'acme',
        name: 'Renamed',
        environment: 'live',
        hint: '…9xQ2',
        state: 'retiring',
        scopes: ['read:profiles'],
        allow: [],
        limits: [],
        owner: null,
        tags: [],
        created_at: '2026-01-01T00:00:00.000Z',
        expires_at: null,
        rotation: { successor_id: 'next', retires_at: '2026-01-02T00:00:00.000Z' },
        last_used_at: null,
        actor: stamp.actor,
        changed: ['state', 'rotation'],
      },
    })
    const changedBy = (type: string) => events.find((each) => each.type === type).data.changed
    const types = ['key.issued', 'key.updated', 'scope.granted', 'partner.removed']
    t.strictSame(types.map(changedBy), [[], ['name'], ['scopes'], ['state']])
    const { slug, name } = partner({ name: 'Acme Travel' })
    t.strictSame(events.find(({ type }) => type === 'partner.suspended').data, {
      slug,
      name,
      state: 'suspended',
      modules: [],
      limits: [],
      contact: null,
      tags: [],
      external_id: null,
      self_service: [],
      created_at: '2026-01-01T00:00:00.000Z',
      actor: stamp.actor,
      changed: ['state'],
    })
    const messages = (await list(store, acme)).map(({ id }) => id)
    t.equal(new Set(messages).size, messages.length)
    t.ok(messages.every((id) => /^msg_[0-9A-Z]{20}$/.test(id)), 'each event has an id')
    const shared = new Set((await list(store, every)).map(({ id }) => id))
    t.ok(messages.every((id) => shared.has(id)), 'an event has one id in all webhooks')
  })

  await check('events have details, the contact for notices among them, but no note', async (t, store) => {
    const every = webhook('1')
    await create(store, every)
    const details = { contact: 'dev@acme.example', tags: ['eu', 'travel'], note: 'Secret plans' }
    await apply(
      store,
      { type: 'partner.created', partner: partner() },
      { type: 'key.issued', key: key({ expiresAt: T0 + DAY, owner: 'Web team', tags: ['shop'] }) },
      { type: 'partner.updated', ...partner(details) },
      { type: 'partner.updated', ...partner({ ...details, note: 'Other plans' }) },
      { type: 'module.activated', slug: 'acme', module: 'banner' },
    )
    await enqueueExpiring(store, T0)
    const events = await told(store, every)
    const [expiring] = events.filter(({ type }) => type === 'key.expiring').map(({ data }) => data)
    const { owner, tags, contact, partner_tags: ofPartner } = expiring
    t.strictSame([owner, tags, contact, ofPartner], ['Web team', ['shop'], details.contact, details.tags])
    const updates = events.filter(({ type }) => type === 'partner.updated').map(({ data }) => data)
    t.strictSame(updates.map((data) => data.changed), [['tags', 'contact']], 'none of a note alone')
    t.strictSame(updates.map((data) => data.contact), [details.contact])
    t.ok(!JSON.stringify(events).includes('plans'), 'no event has the note')
  })

  await check('a webhook that is disabled is told of to others, without its URL', async (t, store) => {
    const gone = webhook('1', { partner: 'acme' })
    const acme = webhook('2', { partner: 'acme' })
    const globex = webhook('3', { partner: 'globex' })
    const every = webhook('4')
    await create(store, gone!, acme!, globex!, every!)
    const disable = async () =>
      await outbox(store).changeWebhook(
        gone.id,
        'webhook.disabled',
        stamp,
        (found) => found?.state === 'active' ? { ...found, state: 'disabled' } : found,
      )
    await disable()
    await disable()
    const dates = {
      old_secret_expires_at: '2026-01-02T00:00:00.000Z',
      pending_removed_at: '2026-01-31T00:00:00.000Z',
    }
    const who = { actor: stamp.actor, changed: ['state'] }
    const data = { id: gone.id, partner: 'acme', state: 'disabled', ...dates, ...who }
    for (const one of [acme!, every!]) {
      const [event, ...more] = await told(store, one)
      const { url, events: _, created_at: __, failing_since: ___, ...rest } = event.data
      t.strictSame([event.type, url, rest, more], ['webhook.disabled', undefined, data, []])
    }
    t.strictSame([await list(store, gone!), await list(store, globex!)], [[], []])
  })

  await check('a webhook for one kind of end alone is told of it', async (t, store) => {
    await createPartners(store, 'acme')
    for (const [id, expiresAt] of [['over', T0 - 1], ['soon', T0 + DAY]] as const) {
      await apply(store, { type: 'key.issued', key: key({ id, expiresAt }) })
    }
    for (const [type, id] of [['key.expired', 'over'], ['key.expiring', 'soon']] as const) {
      const only = webhook(id, { events: [type] })
      await create(store, only)
      await enqueueExpiring(store, T0)
      const events = await told(store, only)
      t.strictSame(events.map(({ type, data }) => [type, data.id]), [[type, id]])
      await outbox(store).changeWebhook(only.id, 'webhook.removed', stamp, () => undefined)
    }
  })

  await check('keys that end are told of 14 and 3 days ahead, each time once', async (t, store) => {
    const acme = webhook('1', { partner: 'acme' })
    const every = webhook('2', { events: ['key.expiring'] })
    await createPartners(store, 'acme', 'globex')
    const now = T0
    const keys = {
      'in-3': { expiresAt: now + 3 * DAY },
      'in-4': { expiresAt: now + 4 * DAY },
      'in-14': { expiresAt: now + 14 * DAY, partner: 'globex' },
      'in-15': { expiresAt: now + 15 * DAY },
      'retires': { expiresAt: now + 90 * DAY, retiresAt: now + 2 * DAY, successorId: 'never' },
      'never': {},
      'disabled': { expiresAt: now + DAY, state: 'disabled' },
      'over': { expiresAt: now - 1 },
    } as const
    await apply(
      store,
      ...Object.entries(keys).map(([id, more]) =>
        ({ type: 'key.issued', key: key({ id, ...more }) }) as const
      ),
    )
    await enqueueExpiring(store, now)
    await create(store, acme, every)
    const notices = async (webhook: Webhook) =>
      (await told(store, webhook)).filter(({ data }) => 'ends_at' in data)
        .map(({ type, data }) => `${type.slice('key.expir'.length)} ${data.id} ${data.ends_at.slice(0, 10)}`)
        .sort()
    await Promise.all([
      enqueueExpiring(store, now),
      enqueueExpiring(store, now + 1),
      enqueueExpiring(store, now),
    ])
    const first = ['ing in-3 2026-01-04', 'ing in-4 2026-01-05', 'ing retires 2026-01-03']
    t.strictSame(await notices(acme), ['ed over 2025-12-31', ...first])
    t.strictSame(await notices(every), ['ing in-14 2026-01-15', ...first])
    await settle(store, ...(await lease(store, acme)).map((delivery) => settled(delivery)))
    await enqueueExpiring(store, now)
    t.equal((await list(store, acme, 'pending')).length, 0, 'never again')
    t.equal(await outbox(store).countPending(acme.id), 0)
    await apply(store, { type: 'key.updated', ...key({ id: 'in-3', expiresAt: now + 10 * DAY }) })
    await apply(store, { type: 'key.updated', ...key({ id: 'in-4', expiresAt: now + 6 * DAY }) })
    await enqueueExpiring(store, now + DAY)
    const more = ['ing in-15 2026-01-16', 'ing in-3 2026-01-11', 'ing in-4 2026-01-07', 'ed over 2025-12-31']
    t.strictSame(await notices(acme), [...first, ...more].sort(), 'the second notice, and those of new ends')
  })

  await check('a delivery is leased to one of several callers, those due longest first', async (t, store) => {
    const one = webhook('1')
    const other = webhook('2', { state: 'disabled' })
    await create(store, one, other)
    const events = Array.from({ length: 60 }, (_, index) => test(String(index), { createdAt: T0 + index }))
    await outbox(store).enqueue(events, one.id)
    await outbox(store).enqueue(events, one.id)
    await outbox(store).enqueue([test('x')])
    await outbox(store).enqueue([test('99')], other.id)
    t.equal((await list(store, one)).length, 60)
    t.strictSame(await outbox(store).dueWebhooks(), [one.id], 'disabled webhooks wait')
    const batches = await Promise.all(Array.from({ length: 8 }, () => lease(store, one, 10)))
    t.strictSame(ids(batches.flat()).sort((a, b) => a - b), ids(events))
    for (const batch of batches) {
      t.ok(batch.length <= 10, 'as many as were asked for')
      t.strictSame(ids(batch), ids(batch).sort((a, b) => a - b))
    }
    t.ok(batches[0]!.every(({ dueAt }) => dueAt > Date.now() + 1_000), 'due again when the lease ends')
    t.strictSame([await lease(store, one), await outbox(store).dueWebhooks()], [[], []])
    const overdue = webhook('3')
    await create(store, overdue, webhook('0'))
    await outbox(store).enqueue([test('1')], overdue.id)
    await settle(store, failed((await lease(store, overdue))[0]!, { state: 'pending', retryMs: -60_000 }))
    await outbox(store).enqueue([test('1')], webhook('0').id)
    t.strictSame(await outbox(store).dueWebhooks(), [overdue.id, webhook('0').id], 'due longest first')
    t.strictSame(await lease(store, other), [], 'they are not leased')
    const [late, early, now] = batches.flat()
    const pending = { state: 'pending', lastStatus: 503 } as const
    await settle(store, failed(late!, { ...pending, retryMs: 60_000 }), failed(early!, pending))
    t.strictSame(ids(await lease(store, one, 500, 0)), ids([early!]), 'a retry is due when its time has come')
    t.strictSame(ids(await lease(store, one)), ids([early!]), 'and again when the lease has expired')
    t.ok(now !== undefined, 'there are more')
  })

  await check('outcomes are recorded, and no late failure replaces a success', async (t, store) => {
    const one = webhook('1')
    await create(store, one)
    await outbox(store).enqueue([
      test('1'),
      test('2', { createdAt: T0 + 1 }),
      test('3', { createdAt: T0 + 2 }),
    ], one.id)
    const [first, second, third] = await lease(store, one)
    await settle(
      store,
      settled(first!),
      failed(second!, { lastStatus: 500 }),
      failed(third!, { state: 'pending', retryMs: 60_000 }),
    )
    const outcome = ({ id, state, attempts, lastStatus, lastError }: Delivery) =>
      [Number(id.slice(4)), state, attempts, lastStatus, lastError?.slice(0, 12)] as const
    const refused = 'ECONNREFUSED'
    t.strictSame((await list(store, one)).map(outcome), [
      [3, 'pending', 1, undefined, refused],
      [2, 'failed', 1, 500, refused],
      [1, 'delivered', 1, 204, undefined],
    ])
    await settle(store, failed(first!), settled(second!), { ...settled(third!), id: 'msg_none' })
    t.strictSame((await list(store, one)).map(outcome).slice(1), [
      [2, 'delivered', 2, 204, undefined],
      [1, 'delivered', 1, 204, undefined],
    ])
    await settle(store)
  })

  await check('a webhook is failing from the first failure after a success', async (t, store) => {
    const one = webhook('1')
    const other = webhook('2')
    await create(store, one, other)
    await outbox(store).enqueue([test('1'), test('2'), test('3')], one.id)
    await outbox(store).enqueue([test('1')], other.id)
    const [first, second, third] = await lease(store, one)
    const failingSince = async (webhook = one) => (await findWebhook(store, webhook))!.failingSince
    await settle(store, failed(first!, { state: 'pending', retryMs: 0 }))
    const since = await failingSince()
    t.ok(Math.abs(Date.now() - since!) < 60_000, 'since now')
    await settle(store, failed(second!), ...(await lease(store, other)).map((delivery) => settled(delivery)))
    t.strictSame([await failingSince(), await failingSince(other)], [since, undefined])
    const disable = async () =>
      await outbox(store).changeWebhook(
        one.id,
        'webhook.disabled',
        stamp,
        (found) => found?.failingSince === since ? { ...found!, state: 'disabled' } : found,
      )
    await settle(store, failed(third!), settled(first!))
    t.strictSame(
      [await failingSince(), (await disable())!.state],
      [undefined, 'active'],
      'one success is enough',
    )
    await settle(store, failed(second!))
    t.ok(await failingSince() !== undefined, 'again')
  })

  await check('deliveries are listed in pages, replayed and pruned', async (t, store) => {
    const one = webhook('1')
    const gone = webhook('2')
    await create(store, one, gone)
    const events = Array.from(
      { length: 7 },
      (_, index) => test(String(index), { createdAt: T0 + (index >> 1) }),
    )
    await outbox(store).enqueue(events, one.id)
    await outbox(store).enqueue(events, gone.id)
    const [a, b, c, d] = await lease(store, one)
    await settle(store, settled(a!), failed(b!), failed(c!), failed(d!))
    const pages: Delivery[][] = []
    for (let after: Delivery | undefined; pages.at(-1)?.length !== 0; after = pages.at(-1)!.at(-1)) {
      pages.push([...await outbox(store).listDeliveries(one.id, undefined, after, 2)])
    }
    t.strictSame(pages.map(ids), [[6, 5], [4, 3], [2, 1], [0], []])
    t.strictSame(ids(await list(store, one, 'failed')), [3, 2, 1])
    const { createdAt, id } = (await list(store, one, 'failed'))[0]!
    t.strictSame(ids(await outbox(store).listDeliveries(one.id, 'failed', { createdAt, id }, 1)), [2])

    const replay = async (...replayed: string[]) =>
      (await outbox(store).replayDeliveries(one.id, replayed)).map((id) => Number(id.slice(4))).sort()
    t.strictSame(await replay(a!.id, b!.id, c!.id, d!.id, 'msg_none'), [0, 1, 2, 3])
    t.strictSame(
      (await lease(store, one)).map(({ id, attempts }) => [id, attempts]),
      [a, b, c, d].map((each) => [each!.id, 0]),
    )

    await settle(store, failed(a!, { state: 'pending', retryMs: 300_000 }))
    t.strictSame(await replay(a!.id, events[6]!.id), [0, 6], 'one that waits for its next attempt')

    await outbox(store).changeWebhook(gone.id, 'webhook.removed', stamp, () => undefined)
    t.equal((await list(store, gone)).length, 7)
    const pruned = { webhook: gone.id, state: 'pending' } as const
    t.strictSame(
      await outbox(store).pruneDeliveries(),
      events.map(() => pruned),
      'those of a removed webhook',
    )
    t.strictSame([(await list(store, gone)).length, (await list(store, one)).length], [0, 7])
    t.strictSame(await outbox(store).pruneDeliveries(), [], 'those of 30 days are kept')
  })

  await check(
    'pending deliveries of a webhook are removed 30 days after it was disabled',
    async (t, store) => {
      const early = webhook('1')
      const late = webhook('2')
      const active = webhook('3')
      await create(store, early, late, active)
      for (const { id } of [early, late, active]) await outbox(store).enqueue([test('1'), test('2')], id)
      await settle(store, settled((await lease(store, early, 1))[0]!))
      const disable = async ({ id }: Webhook, at: number) =>
        await outbox(store).changeWebhook(id, 'webhook.disabled', { ...stamp, at }, (found) => (
          { ...found!, state: 'disabled' }
        ))
      const at = Date.now() - 30 * DAY
      t.equal((await disable(early, at))!.disabledAt, at)
      await disable(late, at + DAY)
      t.equal((await disable(late, at))!.disabledAt, at + DAY, 'again')
      t.strictSame(await outbox(store).pruneDeliveries(), [{ webhook: early.id, state: 'pending' }])
      t.strictSame(await outbox(store).pruneDeliveries(), [])
      t.strictSame((await list(store, early)).map(({ state }) => state), ['delivered'])
      const enabled = await outbox(store).changeWebhook(
        late.id,
        'webhook.enabled',
        stamp,
        (found) => ({ ...found!, state: 'active' }),
      )
      t.equal(enabled!.disabledAt, undefined)
    },
  )
}
