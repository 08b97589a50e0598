/** Services record the endpoints of the host's own in their store. */
import t from 'tap'
import { createModuleAdministration } from '../../core/admin/modules.ts'
import { createPartnerApi } from '../../core/api.ts'
import { utcDay } from '../../core/lib/time.ts'
import type { LogEvent } from '../../core/log.ts'
import type { RecordedEndpoint, Store } from '../../core/ports/store.ts'
import { defineEndpoint } from '../../core/routes/host-endpoints.ts'
import { ROUTES } from '../../core/routes/router.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createPartner } from '../support/partner.ts'

const define = (name: string, method: 'GET' | 'POST' = 'GET') =>
  defineEndpoint({
    name,
    method,
    path: `/${name}/:id`,
    scope: 'read:orders',
    summary: 'Own',
    limits: ['key', 'signup'],
    handle: () => ({ data: null }),
  })

/** A store that counts its writes. */
async function open() {
  const store = await openMemoryStore()
  const orders = { name: 'orders', scope: 'read:orders', feature: 'Orders' }
  await createModuleAdministration(store, { actor: 'test' }).define(orders)
  const writes: string[][] = []
  const counting: Store = {
    ...store,
    recordEndpoints(endpoints) {
      writes.push(endpoints.map(({ name }) => name))
      return store.recordEndpoints(endpoints)
    },
  }
  const serve = async (options: PartnerApiOptions) => {
    const api = createPartnerApi({ store: counting }, options)
    await api.flush()
    await api.close()
  }
  const paths = async () => (await store.listEndpoints()).map(({ method, path }) => `${method} ${path}`)
  return { store: counting, writes, serve, paths }
}

t.test('only what differs is written, and other programs keep theirs', async (t) => {
  const { store, writes, serve, paths } = await open()
  const endpoints = [define('orders'), define('order-create', 'POST')]
  await serve({ endpoints })
  await serve({ endpoints })
  t.strictSame(writes, [['orders', 'order-create']])
  t.strictSame((await store.listEndpoints())[1], {
    service: 'service',
    name: 'orders',
    method: 'GET',
    path: '/service/orders/{id}',
    scope: 'read:orders',
    limits: ['key', 'signup'],
  })
  await serve({ endpoints: [define('orders')], serviceName: 'other' })
  await serve({ endpoints: [define('orders', 'POST')] })
  t.strictSame(writes.slice(1), [['orders'], ['orders']])
  t.strictSame(await paths(), [
    'POST /service/order-create/{id}',
    'GET /other/orders/{id}',
    'POST /service/orders/{id}',
  ])
  await serve({})
  t.equal(writes.length, 3)
})

t.test('with a base path, built-in endpoints are recorded, too', async (t) => {
  const { writes, serve, paths } = await open()
  await serve({ basePath: '/api' })
  await serve({ basePath: '/api' })
  t.strictSame(writes, [ROUTES.map(({ name }) => name)])
  t.ok((await paths()).includes('GET /api/service/public/profiles/{slug}'))
  await serve({ basePath: '/v2' })
  t.ok((await paths()).includes('GET /v2/service/public/profiles/{slug}'))
  await serve({})
  t.ok((await paths()).includes('GET /service/public/profiles/{slug}'), 'without one, corrected')
})

t.test('a failed write is logged once, tried again, and fails no request', async (t) => {
  const { store } = await open()
  const { key, text } = await (await createPartner(store)).issue()
  const { promise, resolve } = Promise.withResolvers<readonly RecordedEndpoint[]>()
  const events: LogEvent[] = []
  let attempts = 0
  const api = createPartnerApi({
    store: {
      ...store,
      recordEndpoints(endpoints) {
        if (attempts++ < 2) throw new Error('disk full')
        resolve(endpoints)
      },
    },
  }, { endpoints: [define('orders')], log: (event) => events.push(event) })
  const request = new Request('http://localhost/service/public/plans?partner=acme', {
    headers: { 'X-Service-Partner-Key': text },
  })
  t.equal((await api.fetch(request)).status, 200)
  await api.flush()
  await api.flush()
  const day = utcDay(Date.now())
  t.match(
    await store.keyUsage([key.id], day, day),
    [{ endpoint: 'plans' }],
    'counts are written nevertheless',
  )
  await api.flush()
  t.match(await promise, [{ name: 'orders' }])
  await api.close()
  t.strictSame(events.map(({ event, error }) => [event, error]), [['write_failed', 'Error: disk full']])
  t.equal(attempts, 3)
})

t.test('endpoints are recorded without a request, and those of protect when they are added', async (t) => {
  const { store } = await open()
  const added: ((endpoints: readonly RecordedEndpoint[]) => void)[] = []
  const api = createPartnerApi({
    store: { ...store, recordEndpoints: (endpoints) => added.shift()!(endpoints) },
  }, { endpoints: [define('orders')] })
  const next = () => new Promise<readonly RecordedEndpoint[]>((resolve) => added.push(resolve))
  t.match(await next(), [{ name: 'orders' }])
  const route = { name: 'invoice', method: 'GET', path: '/invoices', summary: 'Own' } as const
  api.protect({ ...route, scope: 'read:orders' }, () => new Response())
  t.match((await next()).at(-1), { name: 'invoice', path: '/invoices' })
  await api.close()
})
