/**
 * An endpoint of one's own, a protected route and a guarded one decide alike (contract, section 12), in every host and
 * behind middleware that changes requests. `RUNS` sets the number of requests, default 300.
 */
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http'
import { once } from 'node:events'
import process from 'node:process'
import { buffer } from 'node:stream/consumers'
import fc from 'fast-check'
import { Hono } from 'hono'
import t from 'tap'
import { createGuard } from '../../adapters/runtimes/node.ts'
import { createModuleAdministration } from '../../core/admin/modules.ts'
import { ENDPOINT_METHODS, type EndpointMethod, takesBody } from '../../core/model.ts'
import { defineEndpoint } from '../../core/routes/host-endpoints.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { serveStore } from '../support/partner-service.ts'
import { type HostOptions, HOSTS, listen } from './guarded.ts'

const runs = Number(process.env['RUNS'] ?? 300)

/** A request as its client sends it. */
interface Sent {
  readonly method: EndpointMethod
  readonly key: string
  readonly credential: 'header' | 'bearer' | 'both' | 'none'
  /** In the query. */
  readonly partner: string
  readonly body: string
  readonly type: string
  readonly headers: Readonly<Record<string, string>>
}

const KEY_HEADER = 'x-service-partner-key'

function headersOf({ method, key, credential, body, type, headers }: Sent): Record<string, string> {
  return {
    host: 'localhost',
    ...headers,
    ...(/header|both/.test(credential) && { [KEY_HEADER]: key }),
    ...(/bearer|both/.test(credential) && { authorization: `Bearer ${key}` }),
    ...(takesBody(method) && { 'content-type': type, 'content-length': String(Buffer.byteLength(body)) }),
  }
}

function targetOf({ method, partner }: Sent, path: string): string {
  return takesBody(method) || partner === '' ? path : `${path}?partner=${partner}`
}

/** What the middleware of a host does to a request, and what its client would send without it. */
interface Change {
  /** What the client sends for the host to make `Sent` of it. */
  readonly sent: (headers: Record<string, string>) => Record<string, string>
  readonly middleware: (headers: Record<string, string | undefined>) => void
}

const CHANGES: Readonly<Record<string, Change>> = {
  none: { sent: (headers) => headers, middleware: () => undefined },
  'sets the key': {
    sent({ [KEY_HEADER]: key, ...headers }) {
      return key === undefined ? headers : { ...headers, 'x-own-key': key }
    },
    middleware(headers) {
      if (headers['x-own-key'] !== undefined) headers[KEY_HEADER] = headers['x-own-key']
    },
  },
  'replaces the key': {
    sent: (headers) =>
      headers[KEY_HEADER] === undefined
        ? headers
        : { ...headers, [KEY_HEADER]: 'nonsense', 'x-own-key': headers[KEY_HEADER] },
    middleware(headers) {
      if (headers['x-own-key'] !== undefined) headers[KEY_HEADER] = headers['x-own-key']
    },
  },
  'deletes Origin': {
    sent: (headers) =>
      headers['origin'] === undefined ? { ...headers, origin: 'https://a.example' } : headers,
    middleware(headers) {
      if (headers['origin'] === 'https://a.example') delete headers['origin']
    },
  },
}

function mostly<T>(usual: T, others: readonly NoInfer<T>[]): fc.Arbitrary<T> {
  return fc.oneof({ weight: 2, arbitrary: fc.constant(usual) }, fc.constantFrom(...others))
}

const anyRequest = (powerful: string, keys: readonly string[]): fc.Arbitrary<Sent> => {
  const json = fc.record({ partner: fc.constantFrom('demo', 'demo', 'acme', 7, null) }, { requiredKeys: [] })
  return fc.record({
    method: fc.constantFrom(...ENDPOINT_METHODS),
    key: mostly(powerful, keys),
    credential: mostly<Sent['credential']>('header', ['bearer', 'both', 'none']),
    partner: mostly('demo', ['acme', 'none', '', 'demo&partner=demo', '%ff']),
    body: fc.oneof(
      { weight: 3, arbitrary: json.map((value) => JSON.stringify(value)) },
      fc.constantFrom('', '[]', '{', '{"a":1,"a":2}', '"demo"', 'null'),
    ),
    type: mostly('application/json', ['text/plain', 'application/json; charset=utf-16']),
    headers: mostly<Sent['headers']>({}, [
      { origin: 'http://a' },
      { 'service-version': '1' },
      { 'content-encoding': 'gzip' },
      { accept: 'text/html' },
    ]),
  })
}

const agent = new Agent({ keepAlive: true })
t.teardown(() => agent.destroy())

/** @returns `STATUS code`. */
async function ask(origin: string, sent: Sent, headers: Record<string, string>): Promise<string> {
  const { method, body } = sent
  const request = httpRequest(origin + targetOf(sent, '/shop'), { agent, method, headers })
  const [response] = await once(request.end(takesBody(method) ? body : undefined), 'response') as [
    IncomingMessage,
  ]
  return outcome(response.statusCode!, method, String(await buffer(response)))
}

function outcome(status: number, method: string, text: string): string {
  return status < 400 || method === 'HEAD' ? `${status}` : `${status} ${JSON.parse(text).code}`
}

function toRequest(sent: Sent, path: string, headers: Record<string, string>): Request {
  const { method, body } = sent
  return new Request(`http://localhost${targetOf(sent, path)}`, {
    method,
    headers,
    body: takesBody(method) ? body : null,
  })
}

t.test(`${runs} requests`, async (t) => {
  const store = await openMemoryStore()
  await createModuleAdministration(store, { actor: 'test' })
    .define({ name: 'orders', scope: 'read:orders', feature: 'Orders' })
  const route = { scope: 'read:orders', summary: 'Get an invoice' } as const
  const endpoints = (['GET', 'POST'] as const).map((method) =>
    defineEndpoint({
      ...route,
      name: `own-${method.toLowerCase()}`,
      method,
      path: '/own',
      handle: () => ({ data: 1 }),
    })
  )
  const { api, world: { partners, issue, keys } } = await serveStore(store, { endpoints })
  await partners.activate('demo', ['orders'])
  const powerful = (await issue({ partner: 'demo' })).text
  const client = { remoteAddr: { hostname: '127.0.0.1' } }

  /** By host, change and method. */
  const ways = new Map<string, (sent: Sent, headers: Record<string, string>) => Promise<string>>()
  for (const [change, { middleware }] of Object.entries(CHANGES)) {
    for (const method of ENDPOINT_METHODS) {
      const name = `${change.replace(/\W/g, '-').toLowerCase()}-${method.toLowerCase()}`
      const add = { ...route, method, path: '/shop' } as const
      const guard = createGuard(api, { ...add, name: `guard-${name}` })
      const options: HostOptions = {
        middleware: ({ headers }) => middleware(headers as Record<string, string>),
      }
      for (const [host, makeHost] of Object.entries(HOSTS)) {
        for (const bodies of ['unread', 'bytes', 'parsed'] as const) {
          const origin = await listen(t, await makeHost(guard, { ...options, bodies }))
          ways.set(`${host}, ${bodies}, ${change}, ${method}`, (sent, headers) => ask(origin, sent, headers))
        }
      }
      const shop = api.protect({ ...add, name: `hono-${name}` }, () => new Response())
      const hono = new Hono()
      hono.use(async (context, next) => {
        const headers: Record<string, string> = Object.fromEntries(context.req.raw.headers)
        middleware(headers)
        const { raw } = context.req
        const body = takesBody(raw.method) ? await raw.arrayBuffer() : null
        context.req.raw = new Request(raw.url, { method: raw.method, headers, body })
        await next()
      })
      hono.all('/shop', (context) => shop(context.req.raw, client) as Promise<Response>)
      ways.set(`hono, unread, ${change}, ${method}`, async (sent, headers) => {
        const response = await hono.fetch(toRequest(sent, '/shop', headers))
        return outcome(response.status, method, await response.text())
      })
    }
  }

  const isObject = (text: string) => /^\{(?!"a")/.test(text) && text !== '{'
  const outcomes = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(
      anyRequest(powerful, [...Object.values(keys).map(({ text }) => text), `${powerful}x`]),
      fc.constantFrom('active', 'active', 'suspended', 'inactive'),
      fc.constantFrom(...Object.keys(CHANGES)),
      fc.constantFrom('unread', 'bytes', 'parsed'),
      async (sent, state, change, bodies) => {
        // What the host's parser refuses is its affair.
        const parsed = bodies === 'parsed' && isObject(sent.body) && sent.type === 'application/json' &&
          sent.headers['content-encoding'] === undefined
        const read = bodies === 'parsed' && !parsed ? 'unread' : bodies
        if (state === 'suspended') await partners.suspend('demo')
        if (state === 'inactive') await partners.deactivate('demo', ['orders'])
        try {
          const method = takesBody(sent.method) ? 'POST' : sent.method === 'HEAD' ? 'HEAD' : 'GET'
          const headers = headersOf(sent)
          delete headers['accept']
          const own = await api.fetch(toRequest({ ...sent, method }, '/service/own', headers), client)
          const expected = outcome(own.status, sent.method, await own.text())
          outcomes.set(expected, (outcomes.get(expected) ?? 0) + 1)
          const changed = CHANGES[change]!.sent(headersOf(sent))
          for (const host of [...Object.keys(HOSTS), 'hono']) {
            const way = `${host}, ${host === 'hono' ? 'unread' : read}, ${change}, ${sent.method}`
            const actual = await ways.get(way)!(sent, changed)
            if (actual !== expected) throw new Error(`${way}: ${actual}, and an own endpoint: ${expected}`)
          }
        } finally {
          if (state === 'suspended') await partners.resume('demo')
          if (state === 'inactive') await partners.activate('demo', ['orders'])
        }
      },
    ),
    { numRuns: runs },
  )
  t.comment(JSON.stringify(Object.fromEntries(outcomes)))
  for (const code of ['200', '403 partner_mismatch', '403 module_inactive', '401 key_invalid']) {
    t.ok(outcomes.has(code), code)
  }
})
