/** Commands know the endpoints of the host's own, which a service has recorded. */
import { test } from 'tap'
import { createModuleAdministration } from '../../core/admin/modules.ts'
import { createPartnerApi } from '../../core/api.ts'
import { defineEndpoint } from '../../core/routes/host-endpoints.ts'
import type { EndpointScope } from '../../core/model.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { createStore } from '../support/cli-store.ts'

const define = (
  name: string,
  method: 'GET' | 'POST',
  path: `/${string}`,
  scope: EndpointScope = 'read:orders',
) =>
  defineEndpoint({
    name,
    method,
    path,
    scope,
    summary: 'Own',
    limits: ['key', 'signup'],
    handle: () => ({ data: null }),
  })

const endpoints = [
  define('orders', 'GET', '/orders'),
  define('order-create', 'POST', '/orders', 'create:orders'),
  define('order', 'GET', '/orders/:id'),
]

/** A store with two modules of its own, on which a service has run. */
async function open(options: PartnerApiOptions) {
  const created = await createStore({ modules: ['profiles'] })
  const modules = createModuleAdministration(created.store, { actor: 'test' })
  await modules.define({ name: 'orders', scope: 'read:orders', feature: 'Orders' })
  await modules.define({ name: 'order-entry', scope: 'create:orders', feature: 'Order entry' })
  await created.partners.activate('acme', ['orders', 'order-entry'])
  const { key, text } = await created.issue()
  const api = createPartnerApi({ store: created.store }, { endpoints, ...options })
  const get = async (path: string) => {
    const headers = { 'X-Service-Partner-Key': text }
    return (await api.fetch(new Request(`http://localhost${path}?partner=acme`, { headers }))).status
  }
  return { ...created, modules, id: key.id, api, get }
}

test('explain, reports and dry runs know what a service has recorded', async (t) => {
  const { id, api, get, modules, partners, keys, json, run } = await open({})
  t.same([await get('/service/orders/17'), await get('/service/orders')], [200, 200])
  await api.close()

  const explain = (...request: string[]) => json('explain', '--key-id', id, '--partner', 'acme', ...request)
  t.match(await explain('HEAD', '/service/orders/17'), { code: 0, data: { decision: { allowed: true } } })
  t.match(await explain('POST', '/service/orders'), { code: 0, data: { decision: { allowed: true } } })
  t.match((await explain('POST', '/service/orders/17')).error, { code: 'method_not_allowed', detail: 'GET' })
  t.match(
    (await run('explain', '--key-id', id, '--partner', 'acme', 'GET', '/orders')).stderr,
    'GET /service/orders/{id}',
  )

  const { data: report } = await json('reports', 'acme')
  const byEndpoint = report.requests.by_endpoint
  t.same(byEndpoint.map(({ method, path }: Record<string, string>) => `${method} ${path}`), [
    'GET /service/orders',
    'GET /service/orders/{id}',
  ])
  t.match(await run('reports', 'acme'), { stdout: 'GET /service/orders/{id}' })

  const dry = async (...change: string[]) => (await json(...change, '--dry-run')).data
  t.match(await dry('modules', 'deactivate', 'acme', 'orders'), {
    requests: 2,
    refusals: [
      { endpoint: 'orders', code: 'module_inactive', requests: 1 },
      { endpoint: 'order', code: 'module_inactive', requests: 1 },
    ],
  })
  t.match(await dry('partners', 'update', 'acme', '--limit', 'signup=1/86400'), { is_lower_bound: true })

  await partners.deactivate('acme', ['orders'])
  t.match(await explain('GET', '/service/orders/17'), {
    code: 1,
    data: { decision: { code: 'module_inactive' } },
  })
  await keys.remove(id, ['read:orders'])
  await modules.forget('orders')
  t.match((await explain('GET', '/service/orders/17')).error, { code: 'route_not_found' })
  t.match(await explain('POST', '/service/orders'), { code: 0 })
})

test('with a base path, the built-in endpoints have it, too', async (t) => {
  const { id, api, get, json } = await open({ basePath: '/api' })
  t.same([await get('/api/service/orders'), await get('/api/service/public/profiles')], [200, 200])
  await api.close()
  const explain = (path: string) => json('explain', '--key-id', id, '--partner', 'acme', 'GET', path)
  for (const path of ['/api/service/orders', '/api/service/public/profiles/a', '/api/service/health']) {
    t.match(await explain(path), { code: 0, data: { decision: { allowed: true } } }, path)
  }
  t.match((await explain('/service/public/profiles')).error, {
    code: 'route_not_found',
    detail: /Paths of this service start with \/api\/service\/\.$/,
  })
  const other = ['--service-name', 'other']
  t.match(
    await json('explain', ...other, '--key-id', id, '--partner', 'acme', 'GET', '/other/public/profiles'),
    { code: 0 },
    'another service of the store has no base path',
  )
  const paths = (await json('reports', 'acme')).data.requests.by_endpoint
  t.same(paths.map(({ path }: { readonly path: string }) => path), [
    '/api/service/orders',
    '/api/service/public/profiles',
  ])
})

test('a route that protect checks is known by its complete path', async (t) => {
  const { id, api, json, keys } = await open({ basePath: '/api' })
  const route = { name: 'invoice', method: 'GET', path: '/shop/invoices/:id', summary: 'Own' } as const
  api.protect({ ...route, scope: 'read:orders' }, () => new Response())
  api.protect(
    { ...route, name: 'list', path: '/shop/invoices/list', scope: 'create:orders' },
    () => new Response(),
  )
  await api.close()
  const known = ['explain', '--key-id', id, '--partner', 'acme']
  t.match(await json(...known, 'GET', '/shop/invoices/17'), {
    code: 0,
    data: { decision: { allowed: true } },
  })
  await keys.remove(id, ['create:orders'])
  t.match(await json(...known, 'GET', '/shop/invoices/list'), {
    code: 1,
    data: { decision: { required_scope: 'create:orders' } },
  }, 'fixed segments are matched before parameters')
})
