/** Routes of the host's own router behind the checks of the service (contract, section 12). */
import t from 'tap'
import { Problem } from '../../core/http/problem.ts'
import type { LogEvent } from '../../core/log.ts'
import type { EndpointGrant } from '../../core/routes/host-code.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { serveStore } from '../support/partner-service.ts'

const route = {
  name: 'invoice',
  method: 'GET',
  path: '/shop/invoices/:id',
  scope: 'read:orders',
  summary: 'Get an invoice',
} as const

async function serveShop(options: PartnerApiOptions = {}) {
  const store = await openMemoryStore()
  const service = await serveStore(store, options)
  const { modules, partners, issue } = service.world
  await modules.define({ name: 'orders', scope: 'read:orders', feature: 'Orders' })
  for (const slug of ['demo', 'acme', 'hush']) await partners.activate(slug, ['orders'])
  return { ...service, key: await issue({ partner: 'demo' }) }
}

type Shop = Awaited<ReturnType<typeof serveShop>>

const headersOf = (key: { readonly text: string }) => ({ 'X-Service-Partner-Key': key.text })

/** A request for the route, by default with a key for its own partner. */
function invoiceRequest({ key }: Shop, query = '?partner=demo', init: RequestInit = {}): Request {
  return new Request(`http://localhost/shop/invoices/7${query}`, { headers: headersOf(key), ...init })
}

t.test('the handler gets its own request and the grant, and its response the fields of the service', async (t) => {
  const shop = await serveShop()
  const seen: { request: unknown; grant: EndpointGrant; context: unknown }[] = []
  const fetch = shop.api.protect(route, (request, grant, context: { readonly id: string }) => {
    seen.push({ request, grant, context })
    return Response.json({ id: context.id }, {
      status: 203,
      headers: { 'X-Own': 'a', 'X-Request-Id': 'mine', RateLimit: 'none', 'Service-Version': '1' },
    })
  })
  const request = invoiceRequest(shop, '?partner=demo&any=1', {
    headers: { ...headersOf(shop.key), Accept: 'application/pdf' },
  })
  const context = { id: '7', remoteAddr: { hostname: '192.0.2.1' } }
  const response = await fetch(request, context)
  t.equal(seen[0]!.request, request)
  t.equal(seen[0]!.context, context)
  t.match(seen[0]!.grant, { partner: { slug: 'demo' }, key: { id: shop.key.id }, now: Number })
  t.notOk('digest' in seen[0]!.grant.key)
  t.strictSame([response.status, await response.json()], [203, { id: '7' }])
  t.match(Object.fromEntries(response.headers), {
    'x-own': 'a',
    'x-request-id': /^req_/,
    'service-version': '2026-11-20',
    'ratelimit': /^"key";r=/,
    'ratelimit-policy': /^"key";q=/,
    'cache-control': 'private, no-store',
    'vary': 'Authorization, X-Service-Partner-Key, Service-Version',
  })
})

t.test('a response may have its own caching, and be shared or immutable', async (t) => {
  const shop = await serveShop()
  const shared = new Response(null, { status: 204, headers: { 'Cache-Control': 'no-cache', Vary: 'Accept' } })
  const fetch = shop.api.protect(route, (_, __, { own }: { readonly own: Response }) => own)
  const first = await fetch(invoiceRequest(shop), { own: shared })
  t.match(Object.fromEntries(first.headers), { 'cache-control': 'no-cache', vary: 'Accept' })
  t.notOk(shared.headers.has('x-request-id'))
  const moved = await fetch(invoiceRequest(shop), { own: Response.redirect('http://localhost/new') })
  t.match([moved.status, moved.headers.get('x-request-id')], [302, /^req_/])
})

t.test('reports, verify-key and the log have the route by its name', async (t) => {
  const log: LogEvent[] = []
  const shop = await serveShop({ log: (event) => log.push(event), logLevel: 'all' })
  const { key, api, request, post } = shop
  const verify = () => post('/developer/verify-key', { partner: 'demo' }, { key })
  t.notMatch((await verify()).text, 'invoices')
  const fetch = api.protect(route, () => new Response('an invoice'))
  await fetch(invoiceRequest(shop))
  await fetch(invoiceRequest(shop, '?partner=acme'))
  t.match(log.filter(({ endpoint }) => endpoint === 'invoice'), [
    { path: '/shop/invoices/7', status: 200, partner: 'demo', key_id: key.id },
    { status: 403, code: 'partner_mismatch' },
  ])
  const { json } = await verify()
  t.strictSame(json.data.endpoints.at(-1), {
    method: 'GET',
    path: '/shop/invoices/{id}',
    scope: 'read:orders',
    allowed: true,
  })
  await api.flush()
  const { json: report } = await request('/partner/reports/summary?partner=demo')
  t.match(report.data.requests.by_endpoint.find(({ path }: { path: string }) => path.startsWith('/shop')), {
    method: 'GET',
    path: '/shop/invoices/{id}',
    requests: 2,
    errors: 1,
  })
})

t.test('what the handler throws is a problem, and its error is in the log', async (t) => {
  const log: LogEvent[] = []
  const shop = await serveShop({ log: (event) => log.push(event), handlerTimeoutMs: 50 })
  const fetch = shop.api.protect(
    route,
    (_, __, { work }: { readonly work: () => unknown }) => work() as Response,
  )
  const outcomes: readonly [work: () => unknown, status: number, code: string][] = [
    [() => Promise.reject(new Problem('profile_not_found')), 404, 'profile_not_found'],
    [() => Promise.reject(new Error('secret')), 500, 'internal'],
    [() => Promise.reject(undefined), 500, 'internal'],
    [() => ({ data: 1 }), 500, 'internal'],
    [() => Response.error(), 500, 'internal'],
    [() => new Promise(() => {}), 503, 'overloaded'],
  ]
  for (const [work, status, code] of outcomes) {
    const response = await fetch(invoiceRequest(shop), { work })
    t.equal(response.headers.get('content-type'), 'application/problem+json')
    const text = await response.text()
    t.match([response.status, JSON.parse(text)], [status, { code, instance: '/shop/invoices/7' }])
    t.notMatch(text, 'secret')
  }
  t.match(log[0], { endpoint: 'invoice', status: 500, code: 'internal', error: 'Error: secret' })
  const used = new Response('used')
  await used.text()
  t.equal((await fetch(invoiceRequest(shop), { work: () => used })).status, 500)
  t.equal((await fetch({} as Request, { work: () => used })).status, 500)
})

t.test('a handler cannot change what the policy knows', async (t) => {
  const shop = await serveShop()
  await shop.world.partners.update('demo', { note: 'Pays late.', contact: 'ada@example.com' })
  const fetch = shop.api.protect(route, (_, { partner, key }) => {
    t.notMatch(JSON.stringify(partner), /late|ada@/)
    Object.assign(partner, { slug: 'acme' })
    t.throws(() => (partner.modules as string[]).pop(), TypeError)
    t.throws(() => (key.scopes as string[]).push('read:banner'), TypeError)
    return new Response()
  })
  t.equal((await fetch(invoiceRequest(shop))).status, 200)
  t.equal((await fetch(invoiceRequest(shop))).status, 200)
})

t.test('a POST names its partner in the body, which the handler can still read', async (t) => {
  const log: LogEvent[] = []
  const shop = await serveShop({ log: (event) => log.push(event) })
  const fetch = shop.api.protect(
    { ...route, method: 'POST' },
    async (request) => new Response(await request.text()),
  )
  const post = (body: string, declared: object = {}) =>
    invoiceRequest(shop, '?partner=acme', {
      method: 'POST',
      body,
      headers: { ...headersOf(shop.key), 'Content-Type': 'application/json', ...declared },
    })
  const body = '{"partner": "demo", "any": [1]}'
  t.equal(await (await fetch(post(body))).text(), body)
  t.equal(await (await fetch(post(body, { 'Content-Length': String(body.length) }))).text(), body)
  t.equal((await fetch(post('{}'))).status, 400)
  t.equal((await fetch(post(`{"partner":"demo","x":"${'x'.repeat(33_000)}"}`))).status, 413)
  t.equal((await fetch(post(body, { 'Content-Type': 'text/plain' }))).status, 415)
  for (
    const take of [(request: Request) => request.text(), (request: Request) => request.body!.getReader()]
  ) {
    const read = post(body)
    await take(read)
    t.equal((await fetch(read)).status, 500)
    t.match(log.at(-1), { endpoint: 'invoice', error: /body has already been read/ })
    const keyless = post(body, { 'X-Service-Partner-Key': '' })
    await take(keyless)
    t.equal((await fetch(keyless)).status, 401)
  }
})

t.test('a route that cannot be protected is refused at once', async (t) => {
  const { api } = await serveShop()
  const add = (more: object) => () => api.protect({ ...route, ...more }, () => new Response())
  t.throws(add({ name: 'plans' }), new RangeError('The endpoint plans: its name is taken.'))
  t.throws(
    add({ scope: 'read:none' }),
    /the scope read:none\. .* partner-api modules define none --scope read:none/,
  )
  t.throws(add({ name: 'Invoice' }), /its name must be 1–40 of/)
  t.throws(add({ method: 'get' }), /its method must be GET or HEAD or POST or PUT or PATCH or DELETE/)
  for (const path of ['shop', '/a(b', '/x/[[...slug', '/:id/:id', '/:constructor', undefined]) {
    t.throws(add({ path }), /its path must be of segments/, String(path))
  }
  for (const limits of ['key', ['none']]) t.throws(add({ limits }), /its limits must be a list of key/)
  t.throws(() => api.protect({ ...route }, undefined as never), /its handler must be a function/)
  // The host's router decides what it sends here.
  api.protect({ ...route, path: '/service/directory' }, () => new Response())
  t.throws(add({}), /its name is taken/)
})
