/** Middleware for Express, Connect and Fastify (contract, section 12). */
import { once } from 'node:events'
import {
  type IncomingMessage,
  request as httpRequest,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import express from 'express'
import createFastify from 'fastify'
import t from 'tap'
import { createGuard, grantOf, type NodeRequest } from '../../adapters/runtimes/node.ts'
import type { LogEvent } from '../../core/log.ts'
import { ENDPOINT_METHODS, type EndpointMethod, takesBody } from '../../core/model.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { until } from '../postgres/until.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { serveStore } from '../support/partner-service.ts'
import { type Answer, HOSTS, listen } from './guarded.ts'

const route = (method: EndpointMethod) => ({
  name: `invoice-${method.toLowerCase()}`,
  method,
  path: '/invoices/:id' as const,
  scope: 'read:orders' as const,
  summary: 'Get an invoice',
})

async function serveShop(options: PartnerApiOptions = {}) {
  const service = await serveStore(await openMemoryStore(), options)
  const { modules, partners, issue } = service.world
  await modules.define({ name: 'orders', scope: 'read:orders', feature: 'Orders' })
  for (const slug of ['demo', 'acme']) await partners.activate(slug, ['orders'])
  return { ...service, key: await issue({ partner: 'demo' }) }
}

const withKey = (key: { readonly text: string }) => ({ 'X-Service-Partner-Key': key.text })

/** The fields of a response that name the request and the limits. */
function fieldsOf({ headers }: Response) {
  const names = ['x-request-id', 'service-version', 'ratelimit', 'ratelimit-policy', 'cache-control', 'vary']
  return Object.fromEntries(names.map((name) => [name, headers.get(name)]))
}

const SERVICE_FIELDS = {
  'x-request-id': /^req_/,
  'service-version': '2026-11-20',
  'ratelimit': /^"key";r=/,
  'ratelimit-policy': /^"key";q=/,
}

for (const [name, makeHost] of Object.entries(HOSTS)) {
  t.test(name, async (t) => {
    await t.test('every method', async (t) => {
      const { api, key } = await serveShop()
      for (const method of ENDPOINT_METHODS) {
        const url = await listen(t, await makeHost(createGuard(api, route(method)), {}))
        const call = (partner: string, init: RequestInit = {}) =>
          takesBody(method)
            ? fetch(`${url}/invoices/7`, {
              method,
              body: JSON.stringify({ partner, any: [1] }),
              ...init,
              headers: { ...withKey(key), 'content-type': 'application/json', ...init.headers },
            })
            : fetch(`${url}/invoices/7?partner=${partner}`, { method, headers: withKey(key) })
        const granted = await call('demo')
        t.equal(granted.status, 200, method)
        t.match(fieldsOf(granted), {
          ...SERVICE_FIELDS,
          'cache-control': 'private, no-store',
          'vary': 'Authorization, X-Service-Partner-Key, Service-Version',
        })
        const body = takesBody(method) ? { partner: 'demo', any: [1] } : undefined
        if (method !== 'HEAD') t.match(await granted.json(), { partner: 'demo', key: key.id, body })
        const refused = await call('acme')
        t.equal(refused.status, 403)
        t.match(fieldsOf(refused), { ...SERVICE_FIELDS, 'cache-control': 'no-store' })
        t.match(Object.fromEntries(refused.headers), {
          'content-type': 'application/problem+json',
          'referrer-policy': 'no-referrer',
          'x-content-type-options': 'nosniff',
        })
        if (method !== 'HEAD') {
          t.match(await refused.json(), { code: 'partner_mismatch', instance: '/invoices/7' })
        }
        if (takesBody(method)) {
          t.equal((await call('demo', { headers: { 'content-encoding': 'br' } })).status, 415)
        }
        const other = await fetch(`${url}/invoices/7`, { method: method === 'PUT' ? 'DELETE' : 'PUT' })
        t.equal(other.status, 405)
        t.match(other.headers.get('allow'), method)
        t.equal((await fetch(`${url}/invoices/7`, { method: 'OPTIONS' })).status, 204)
      }
    })

    await t.test('the host cannot change the fields of the service, and may have its own caching', async (t) => {
      const { api, key } = await serveShop()
      const guard = createGuard(api, route('GET'))
      const own = { 'x-request-id': 'mine', RateLimit: 'none', 'Cache-Control': 'no-cache', Vary: 'Accept' }
      const answers: readonly Answer[] = [
        (_, response) => {
          response.removeHeader('X-Request-Id')
          response.removeHeader('RateLimit')
          response.setHeader('RateLimit-Policy', 'none')
          response.setHeader('Cache-Control', 'no-cache')
          response.setHeader('Vary', 'Accept')
          response.end('a')
        },
        (_, response) => response.writeHead(200, own).end('a'),
        (_, response) => response.writeHead(200, 'Fine', Object.entries(own).flat()).end('a'),
      ]
      for (const answer of answers) {
        const url = await listen(t, await makeHost(guard, { answer }))
        const response = await fetch(`${url}/invoices/7?partner=demo`, { headers: withKey(key) })
        t.match(fieldsOf(response), { ...SERVICE_FIELDS, 'cache-control': 'no-cache', vary: 'Accept' })
        t.equal(await response.text(), 'a')
      }
    })

    await t.test('the final status is counted and logged when the response ends', async (t) => {
      const log: LogEvent[] = []
      const { api, key, request } = await serveShop({ log: (event) => log.push(event), logLevel: 'all' })
      const pending: ServerResponse[] = []
      const answer: Answer = (_, response) => void pending.push(response)
      const url = await listen(t, await makeHost(createGuard(api, route('GET')), { answer }))
      const sent = fetch(`${url}/invoices/7?partner=demo`, { headers: withKey(key) })
      await until(() => pending.length === 1, 'the handler to be called')
      t.strictSame(log, [], 'nothing is logged yet')
      pending[0]!.writeHead(404).end()
      t.equal((await sent).status, 404)
      await until(() => log.length > 0, 'the response to be logged')
      t.match(log, [{
        endpoint: 'invoice-get',
        path: '/invoices/7',
        status: 404,
        partner: 'demo',
        key_id: key.id,
      }])

      const left = httpRequest(`${url}/invoices/7?partner=demo`, { headers: withKey(key) }).end()
      left.on('error', () => undefined)
      await until(() => pending.length === 2, 'the handler to be called')
      left.destroy()
      await until(() => log.length === 2, 'a request whose client has gone to be logged')
      await api.flush()
      const { json } = await request('/partner/reports/summary?partner=demo')
      t.match(json.data.requests.by_endpoint, [{ path: '/invoices/{id}', requests: 2, errors: 1 }])
    })

    await t.test('the address of the client, and what an option throws', async (t) => {
      const { api, world } = await serveShop()
      const fenced = await world.issue({ partner: 'demo', allow: ['198.51.100.0/24'] })
      let address = (): string | undefined => '198.51.100.7'
      const seen: unknown[] = []
      const guard = createGuard(api, route('GET'), {
        address(request: NodeRequest) {
          seen.push(request.method)
          return address()
        },
      })
      const url = await listen(t, await makeHost(guard, {}))
      const status = async () =>
        (await fetch(`${url}/invoices/7?partner=demo`, { headers: withKey(fenced) })).status
      t.equal(await status(), 200)
      address = () => undefined
      t.equal(await status(), 403)
      address = () => {
        throw new Error('no address')
      }
      t.equal(await status(), 500)
      t.strictSame(seen, ['GET', 'GET', 'GET'])
    })
  })
}

t.test('a body counts as the host has parsed it, and is left parsed otherwise', async (t) => {
  const { api, key } = await serveShop()
  const guard = createGuard(api, route('POST'))
  const app = express()
  const answer = (request: express.Request, response: express.Response) => {
    response.json({ partner: grantOf(request).partner.slug, body: request.body })
  }
  app.post('/unparsed', guard, express.json(), answer)
  app.post('/parsed', express.json({ limit: '1mb', type: () => true }), guard, answer)
  app.post('/form', express.urlencoded(), guard, answer)
  app.post('/bytes', express.raw({ type: () => true, limit: '1mb' }), guard, (request, response) => {
    response.json({ partner: grantOf(request).partner.slug, body: String(request.body) })
  })
  app.post('/text', express.text({ type: () => true }), guard, answer)
  app.post('/dropped', (request, _, next) => void request.on('end', next).resume(), guard, answer)
  const url = await listen(t, app)
  const post = async (path: string, body: string, more: Record<string, string> = {}) => {
    const headers = { ...withKey(key), 'content-type': 'application/json', ...more }
    const response = await fetch(`${url}/${path}`, { method: 'POST', body, headers })
    const { code = '', body: read } = await response.json() as {
      readonly code?: string
      readonly body?: unknown
    }
    return [response.status, code, read]
  }
  const body = '{"partner":"demo","any":[1]}'
  const parsed = { partner: 'demo', any: [1] }
  for (const path of ['unparsed', 'parsed', 'form']) {
    t.strictSame(await post(path, body), [200, '', parsed], path)
  }
  for (const path of ['bytes', 'text']) t.strictSame(await post(path, body), [200, '', body], path)
  t.strictSame(await post('dropped', body), [500, 'internal', undefined])
  const large = `{"partner":"demo","x":"${'x'.repeat(33_000)}"}`
  t.equal((await post('parsed', large))[0], 200, 'its size is the affair of the host')
  for (const path of ['unparsed', 'bytes']) {
    t.strictSame(await post(path, large), [413, 'body_too_large', undefined])
  }
  const repeated = '{"partner":"acme","partner":"demo"}'
  t.equal((await post('parsed', repeated))[0], 200, 'as are repeated names')
  t.strictSame(await post('unparsed', repeated), [400, 'malformed_request', undefined])
  t.strictSame(await post('parsed', '{"partner":"acme"}'), [403, 'partner_mismatch', undefined])
  const form = await post('form', 'partner=demo', { 'content-type': 'application/x-www-form-urlencoded' })
  t.strictSame(form, [415, 'unsupported_media_type', undefined])
})

t.test('JSON of a text is no object, whatever parses it', async (t) => {
  const { api, key } = await serveShop()
  const guard = createGuard(api, route('POST'))
  const text = JSON.stringify({ partner: 'demo' })
  for (const [name, makeHost] of Object.entries(HOSTS)) {
    for (const bodies of ['unread', 'bytes', 'parsed'] as const) {
      const origin = await listen(t, await makeHost(guard, { bodies }))
      const send = async (body: string) => {
        const headers = { ...withKey(key), 'content-type': 'application/json' }
        return (await fetch(`${origin}/invoices/1`, { method: 'POST', headers, body })).status
      }
      t.equal(await send(text), 200, `${name}, ${bodies}`)
      // The parser of Express refuses what is neither an object nor a list.
      const isParsedByExpress = name !== 'fastify' && bodies === 'parsed'
      t.equal(await send(JSON.stringify(text)), isParsedByExpress ? 400 : 422, `${name}, ${bodies}: a text`)
    }
  }
  const app = express().use(express.text({ type: () => true }))
  const origin = await listen(t, app.post('/text', guard, (_, response) => void response.end()))
  for (const [body, status] of [[text, 200], [`\uFEFF${text}`, 200], [JSON.stringify(text), 422]] as const) {
    const headers = { ...withKey(key), 'content-type': 'application/json' }
    t.equal((await fetch(`${origin}/text`, { method: 'POST', headers, body })).status, status, body)
  }
})

for (const [name, makeHost] of Object.entries(HOSTS)) {
  t.test(`${name}: a response that has begun is an error`, async (t) => {
    const { api, key } = await serveShop()
    const middleware = (_: IncomingMessage, response: ServerResponse) => void response.write('a')
    const url = await listen(t, await makeHost(createGuard(api, route('GET')), { middleware }))
    const init = { headers: withKey(key), signal: AbortSignal.timeout(5_000) }
    const response = await fetch(`${url}/invoices/7?partner=demo`, init)
    await t.rejects(response.text(), { name: 'TypeError' }, 'the host ends the connection')
  })
}

t.test('a refusal keeps the fields that the host has set', async (t) => {
  const { api } = await serveShop()
  const guard = createGuard(api, route('GET'))
  const app = express()
  app.use((_, response, next) => {
    response.set({ 'X-Own': 'own', 'Cache-Control': 'public' })
    next()
  })
  app.get('/invoices', guard)
  const fastify = createFastify()
  fastify.addHook('onRequest', (_, reply, done) => {
    reply.headers({ 'X-Own': 'own', 'Cache-Control': 'public' })
    done()
  })
  fastify.get('/invoices', { preHandler: guard.fastify }, () => ({}))
  await fastify.ready()
  const hosts: readonly RequestListener[] = [app, (request, response) => fastify.routing(request, response)]
  for (const host of hosts) {
    const { status, headers } = await fetch(`${await listen(t, host)}/invoices`)
    t.strictSame([status, headers.get('x-own'), headers.get('cache-control')], [401, 'own', 'no-store'])
    t.equal(headers.get('content-type'), 'application/problem+json')
  }
})

t.test('a response that the host begins meanwhile is left to it, and counted', async (t) => {
  const log: LogEvent[] = []
  const { api, key } = await serveShop({ log: (event) => log.push(event), logLevel: 'all' })
  const app = express()
  let begin: (() => void) | undefined
  app.use((_, response, next) => {
    begin = () => void response.writeHead(503).end('late')
    next()
  })
  let calls = 0
  app.post('/invoices', createGuard(api, route('POST')), (_, response) => {
    calls++
    response.end()
  })
  const url = await listen(t, app)
  const headers = { ...withKey(key), 'content-type': 'application/json', 'content-length': 18 }
  const sent = httpRequest(`${url}/invoices`, { method: 'POST', headers })
  sent.write('{"partner":')
  await until(() => begin !== undefined, 'the request to arrive')
  begin!()
  const [response] = await once(sent, 'response')
  sent.end('"demo"}')
  t.equal(response.resume().statusCode, 503)
  await until(() => log.length > 0, 'the response to be logged')
  t.match(log, [{ endpoint: 'invoice-post', status: 503 }])
  t.notOk('error' in log[0]!)
  t.equal(calls, 0)
})

t.test('of two guards before a route, the last one makes the fields', async (t) => {
  const log: LogEvent[] = []
  const { api, world } = await serveShop({ log: (event) => log.push(event), logLevel: 'all' })
  const key = await world.issue({ partner: 'demo', scopes: ['read:orders'] })
  const first = createGuard(api, route('GET'))
  const second = createGuard(api, { ...route('GET'), name: 'second' })
  const refusing = createGuard(api, { ...route('GET'), name: 'refusing', scope: 'read:plans' })
  const app = express()
  app.get('/granted', first, second, (_, response) => response.json({}))
  app.get('/refused', first, refusing, (_, response) => response.json({}))
  const fastify = createFastify()
  fastify.get('/granted', { preHandler: [first.fastify, second.fastify] }, () => ({}))
  fastify.get('/refused', { preHandler: [first.fastify, refusing.fastify] }, () => ({}))
  await fastify.ready()
  const hosts: readonly RequestListener[] = [app, (request, response) => fastify.routing(request, response)]
  for (const host of hosts) {
    const url = await listen(t, host)
    for (const [path, last, status] of [['granted', 'second', 200], ['refused', 'refusing', 403]] as const) {
      log.length = 0
      const response = await fetch(`${url}/${path}?partner=demo`, { headers: withKey(key) })
      t.equal(response.status, status)
      const { request_id: id } = await response.json() as { readonly request_id?: string }
      await until(() => log.length === 2, 'both guards to be logged')
      const logged = log.find((event) => 'endpoint' in event && event.endpoint === last)
      t.match(logged, { request_id: response.headers.get('x-request-id') })
      if (status === 403) t.equal(id, response.headers.get('x-request-id'))
    }
  }
})

t.test('what is misused is an error', async (t) => {
  const { api } = await serveShop()
  t.throws(() => createGuard(api, { ...route('GET'), name: 'plans' }), /its name is taken/)
  t.throws(() => createGuard({} as never, route('GET')), /This is no service/)
  t.throws(() => grantOf({}), /No guard has let this request through/)
})
