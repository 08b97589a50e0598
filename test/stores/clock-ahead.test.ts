/** What a clock leaves behind that was ahead for a while: nothing waits for the instants that it wrote. */
import { test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import type { Store } from '../../core/ports/store.ts'
import { apply, createPartners, key } from '../contract/store/samples.ts'
import { newFile } from '../support/cli-program.ts'

const hour = 3_600_000

const open = (file: string): Promise<Store> => openSqliteStore(file, { shareLimits: true })

/** Changes a store that a process with a clock ahead has opened: a clock that jumps meanwhile is not believed. */
async function ahead<T>(file: string, hours: number, change: (store: Store) => T | Promise<T>): Promise<T> {
  const { now } = Date
  Date.now = () => now() + hours * hour
  try {
    const store = await open(file)
    const result = await change(store)
    store.close()
    return result
  } finally {
    Date.now = now
  }
}

test('a window that a clock ahead has opened ends within its length, and keeps what was taken', async (t) => {
  for (const hours of [20, 30]) {
    const file = newFile()
    const window = { policy: 'partner', subject: 'acme', quota: 10, windowSeconds: 86_400 } as const
    const take = (wanted: number) => ({ quotas }: Store) =>
      quotas!.leaseQuota({ ...window, wanted, waiting: wanted })
    await ahead(file, hours, take(4))
    const store = await open(file)
    const peeked = await take(0)(store)
    t.match(peeked, { granted: 0, remaining: 6 }, `${hours} hours`)
    t.ok(peeked.resetMs <= 86_400_000)
    t.match(await take(7)(store), { granted: 6, remaining: 0 })
    t.match(await ahead(file, 24, take(1)), { granted: 1, remaining: 9 }, 'a day later, it is over')
    store.close()
  }
})

test('leases of a window that was opened ahead are returned and reported', async (t) => {
  const file = newFile()
  const window = { policy: 'key', subject: 'one', quota: 10, windowSeconds: 86_400 } as const
  const request = { ...window, wanted: 6, waiting: 1 }
  const { term } = await ahead(file, 20, ({ quotas }) => quotas!.leaseQuota(request))
  const store = await open(file)
  await store.quotas.leaseQuota({ ...window, wanted: 1, waiting: 1 })
  await store.quotas.returnQuotas([{ policy: 'key', subject: 'one', term, used: 2, unused: 3 }])
  t.match(await store.quotas.leaseQuota({ ...window, wanted: 0 }), { remaining: 6 })
  store.close()
})

test('a last use that was recorded ahead is replaced by the next', async (t) => {
  const file = newFile()
  const store = await open(file)
  await createPartners(store, 'acme')
  await apply(store, { type: 'key.issued', key: key({ id: 'one', partner: 'acme' }) })
  const now = Date.now()
  await ahead(file, 20, (store) => store.recordKeyUses(new Map([['one', Date.now()]])))
  t.ok((await store.findKey('one'))!.key.lastUsedAt! > now)
  await store.recordKeyUses(new Map([['one', now]]))
  t.equal((await store.findKey('one'))?.key.lastUsedAt, now)
  await store.recordKeyUses(new Map([['one', now - 1]]))
  t.equal((await store.findKey('one'))?.key.lastUsedAt, now, 'an earlier use does not replace a later one')
  store.close()
})

test('a delivery that is due by a clock ahead is sent after the next maintenance', async (t) => {
  const file = newFile()
  const store = await open(file)
  const { webhooks } = store
  const webhook = {
    id: 'whk_1',
    url: 'https://hooks.example',
    events: ['signup.created'],
    partner: undefined,
  } as const
  const more = {
    state: 'active',
    createdAt: 0,
    failingSince: undefined,
    disabledAt: undefined,
    secrets: [],
  } as const
  await webhooks!.changeWebhook(
    'whk_1',
    'webhook.created',
    { actor: 'test', at: 0 },
    () => ({ ...webhook, ...more }),
  )
  const event = { type: 'signup.created', partner: 'acme', createdAt: 0, payload: '{}' } as const
  await ahead(file, 20, ({ webhooks }) => webhooks!.enqueue([{ ...event, id: 'msg_new' }]))
  t.strictSame(await webhooks!.dueWebhooks(), [])
  await webhooks!.pruneDeliveries()
  t.strictSame((await webhooks!.leaseDeliveries('whk_1', 10, 30_000)).map(({ id }) => id), ['msg_new'])
  await webhooks!.pruneDeliveries()
  t.strictSame(await webhooks!.dueWebhooks(), [], 'a lease stays')
  const result = {
    webhook: 'whk_1',
    id: 'msg_new',
    state: 'pending',
    lastStatus: 500,
    lastError: 'HTTP 500',
  } as const
  await webhooks!.settleDeliveries([{ ...result, retryMs: 24 * hour }])
  await webhooks!.pruneDeliveries()
  t.strictSame(await webhooks!.dueWebhooks(), [], 'and so does the time until another attempt')
  store.close()
})
