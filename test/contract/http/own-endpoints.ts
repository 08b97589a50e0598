/** Section 12: endpoints of the host's own, below a base path. */
import { ORDERS, OWN_MODULES } from '../../support/own-endpoints.ts'
import type { TestKey } from '../../support/world.ts'
import { comparable, expectInvalid, expectProblem } from './expect.ts'
import { get, post, type Service, type Suite, type TestContext, type TestResponse } from './service.ts'

export const ownEndpoints: readonly Suite[] = [{
  settings: { ownEndpoints: true, basePath: '/api', handlerTimeoutMs: 20 },
  tests: {
    'a list is read in pages': pages,
    'a body is checked by its schemas': bodies,
    'the methods of a path follow from its endpoints': methods,
    'scopes and modules of the host are checked': denials,
    'a handler that fails or takes too long is a problem': failures,
    'a cached response is given to its partner only': caching,
    'verify-key and the documents list them': lists,
  },
}]

/** A new key of a partner whose own modules are active. */
async function newKey({ world }: Service, partner = 'demo'): Promise<TestKey> {
  await world.partners.activate(partner, OWN_MODULES.map(({ name }) => name))
  return await world.issue({ partner })
}

async function pages(t: TestContext, service: Service): Promise<void> {
  const key = await newKey(service)
  const wanted = ORDERS.filter(({ partner }) => partner === 'demo').map(({ id, state }) => ({ id, state }))
  const read = (query: string) => get(service, `/orders?partner=demo${query}`, { key })
  const found: unknown[] = []
  let response = await read('')
  for (;;) {
    found.push(...response.json.data)
    const { has_more: hasMore, next_cursor: cursor } = response.json.page
    t.equal(response.headers.has('link'), hasMore, 'a Link field while there is more')
    if (!hasMore) break
    const [, next = ''] = /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '') ?? []
    t.strictSame((await get(service, `/${next}`, { key })).json, (await read(`&cursor=${cursor}`)).json)
    response = await read(`&cursor=${cursor}`)
  }
  t.strictSame(found, wanted, 'the rows of the partner, once each')
  const cursor = `&cursor=${(await read('')).json.page.next_cursor}`
  for (const wrong of [`&state=open${cursor}`, `${cursor}x`]) {
    expectProblem(t, await read(wrong), 'invalid_cursor', wrong)
  }
  const other = await get(service, `/orders?partner=acme${cursor}`, { key: await newKey(service, 'acme') })
  expectProblem(t, other, 'invalid_cursor', 'the cursor of another partner')
  expectInvalid(t, await read('&state=lost&limit=51&other=1'), ['limit', 'other', 'state'], 'parameters')
  const etag = (await read('')).headers.get('etag') ?? ''
  const known = await get(service, '/orders?partner=demo', { key, headers: { 'if-none-match': etag } })
  t.strictSame([known.status, known.text], [304, ''])
}

async function bodies(t: TestContext, service: Service): Promise<void> {
  const key = await newKey(service)
  const send = (members: object) =>
    post(service, JSON.stringify({ partner: 'demo', ...members }), { target: `${service.root}/orders`, key })
  const made = await send({ item: 'pear', count: null })
  t.strictSame([made.status, made.json], [201, { data: { item: 'pear', count: null } }])
  t.strictSame((await send({ count: 2 })).json, { data: { item: 'apple', count: 2 } })
  const errors = ['/count', '/item', '/other']
  expectProblem(t, await send({ item: 'too long', count: '2', other: 1 }), 'invalid_body', 'members', {
    errors,
  })
  expectProblem(t, await send({ item: null }), 'invalid_body', 'null', { errors: ['/item'] })
}

async function methods(t: TestContext, service: Service): Promise<void> {
  const { root, send } = service
  const key = await newKey(service)
  const allowed = (response: TestResponse) => response.headers.get('allow')?.split(', ').toSorted().join()
  for (
    const [path, allow] of [['/orders', 'GET,HEAD,OPTIONS,POST'], ['/orders/1', 'GET,HEAD,OPTIONS']] as const
  ) {
    const options = await send({ method: 'OPTIONS', target: root + path })
    t.strictSame([options.status, allowed(options)], [204, allow], `OPTIONS ${path}`)
    const other = await get(service, path, { method: 'DELETE', key })
    expectProblem(t, other, 'method_not_allowed', `DELETE ${path}`, { instance: root + path })
    t.equal(allowed(other), allow)
    const full = await get(service, `${path}?partner=demo`, { key })
    const head = await get(service, `${path}?partner=demo`, { key, method: 'HEAD' })
    t.equal(full.status, 200)
    t.strictSame(comparable(head), { ...comparable(full), text: '' }, `HEAD ${path}`)
  }
  for (const target of [`${root}/orders/`, `${root}/orders/1/2`, '/service/orders']) {
    expectProblem(t, await send({ target: `${target}?partner=demo` }), 'route_not_found', target)
  }
}

async function denials(t: TestContext, service: Service): Promise<void> {
  const key = await newKey(service)
  const reading = await service.world.issue({ partner: 'demo', scopes: ['read:orders'] })
  const create = (key: TestKey) =>
    post(service, '{"partner":"demo","other":1}', { target: `${service.root}/orders`, key })
  const missing = { members: { required_scope: 'create:orders' } }
  expectProblem(t, await create(reading), 'scope_missing', 'a scope that the key has not', missing)
  expectProblem(
    t,
    await get(service, '/orders?partner=acme&x=1', { key }),
    'partner_mismatch',
    'another partner',
  )
  await service.world.partners.deactivate('demo', ['ordering'])
  const inactive = { members: { required_module: 'ordering' } }
  expectProblem(t, await create(key), 'module_inactive', 'an inactive module', inactive)
  t.equal((await get(service, '/orders?partner=demo', { key })).status, 200, 'the other one is active')
}

async function failures(t: TestContext, service: Service): Promise<void> {
  const key = await newKey(service)
  for (
    const [fails, status, code] of [
      ['never ends', 503, 'overloaded'],
      ['throws', 500, 'internal'],
      ['rejects', 500, 'internal'],
    ] as const
  ) {
    const { status: found, json, headers, text } = await get(
      service,
      `/orders?partner=demo&fails=${encodeURIComponent(fails)}`,
      { key },
    )
    t.strictSame([found, json?.code, headers.has('retry-after')], [status, code, status === 503], fails)
    t.ok(!text.includes('secret'), 'the error is not shown')
  }
}

async function caching(t: TestContext, service: Service): Promise<void> {
  const demo = await newKey(service)
  const acme = await newKey(service, 'acme')
  const read = (partner: string, key: TestKey) => get(service, `/orders/1?partner=${partner}`, { key })
  // From the second request on, the response is kept.
  for (let count = 0; count < 4; count++) {
    t.strictSame((await read('demo', demo)).json, { data: { slug: '1', partner: 'demo' } })
    t.strictSame((await read('acme', acme)).json, { data: { slug: '1', partner: 'acme' } })
    expectProblem(t, await read('demo', acme), 'partner_mismatch', 'the target of another partner')
    const both = await get(service, '/orders/1?partner=demo&partner=acme', { key: acme })
    expectInvalid(t, both, ['partner'], 'both partners')
  }
}

async function lists(t: TestContext, service: Service): Promise<void> {
  const { root, send } = service
  const { json } = await post(service, '{"partner":"demo"}', { key: await newKey(service) })
  t.strictSame(
    json.data.modules.slice(8).map((
      { module, ready }: { module: string; ready: boolean },
    ) => [module, ready]),
    OWN_MODULES.map(({ name }) => [name, true]),
  )
  const own = [['GET', '/orders'], ['GET', '/orders/{slug}'], ['POST', '/orders']]
  t.strictSame(
    json.data.endpoints.slice(11).map(({ method, path }: { method: string; path: string }) => [method, path]),
    own.map(([method, path]) => [method, root + path]),
  )
  const { json: document } = await send({ target: `${root}/openapi.json` })
  for (const [method = '', path] of own) {
    t.ok(document.paths[`/service${path}`]?.[method.toLowerCase()], `${method} ${path} is described`)
  }
}
