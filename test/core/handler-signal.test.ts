/** What handlers of the host's get to know of their request: its id, and a signal that ends their work. */
import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { createGuard, createListener, grantOf } from '../../adapters/runtimes/node.ts'
import type { EndpointGrant } from '../../core/routes/host-code.ts'
import { defineEndpoint } from '../../core/routes/host-endpoints.ts'
import { until } from '../postgres/until.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { serveStore } from '../support/partner-service.ts'

const scope = 'read:plans'
const grants: EndpointGrant[] = []
let work: (grant: EndpointGrant) => Promise<unknown> = () => Promise.resolve(1)
const run = async (grant: EndpointGrant) => {
  grants.push(grant)
  return await work(grant)
}

const slow = defineEndpoint({
  name: 'slow',
  method: 'GET',
  path: '/slow',
  scope,
  summary: 'Take a while',
  handle: async (_, grant) => ({ data: await run(grant) }),
})
const { api, world } = await serveStore(await openMemoryStore(), { endpoints: [slow], handlerTimeoutMs: 50 })
const protectedSlow = api.protect(
  { name: 'protected', method: 'GET', path: '/slow', scope, summary: 'Take a while' },
  async (_, grant) => {
    await run(grant)
    return new Response()
  },
)
const headers = { 'x-service-partner-key': world.keys['demo full'].text }
const target = '/service/slow?partner=demo'

const ways: Readonly<Record<string, (init?: RequestInit) => Promise<Response>>> = {
  'an own endpoint': (init) => api.fetch(new Request(`http://a.example${target}`, { headers, ...init })),
  'a protected route': (init) =>
    protectedSlow(new Request(`http://a.example${target}`, { headers, ...init })),
}

for (const [name, call] of Object.entries(ways)) {
  t.test(name, async (t) => {
    work = () => Promise.resolve(1)
    const response = await call()
    const { requestId, signal } = grants.pop()!
    t.strictSame([response.status, requestId], [200, response.headers.get('x-request-id')])
    t.equal(signal.aborted, false)

    const read: AbortSignal[] = []
    work = ({ signal }) =>
      new Promise((_, reject) => {
        read.push(signal)
        signal.addEventListener('abort', () => reject(signal.reason))
      })
    t.equal((await call()).status, 503, 'at the time limit')
    t.strictSame(read.map(({ aborted }) => aborted), [true])
    work = () => new Promise(() => undefined)
    await call()
    t.equal(grants.pop()!.signal.aborted, true, 'also where it is read later')

    const client = new AbortController()
    const stopped: boolean[] = []
    work = ({ signal }) => {
      client.abort()
      stopped.push(signal.aborted)
      return Promise.resolve()
    }
    await call({ signal: client.signal })
    t.strictSame(stopped, [true], 'with the request')
  })
}

t.test('on Node, when the client has gone, and not after its response', async (t) => {
  const guard = createGuard(api, {
    name: 'guarded',
    method: 'GET',
    path: '/slow',
    scope,
    summary: 'Take a while',
  })
  const listener = createListener(api)
  const server = createServer((request, response) => {
    if (request.url!.startsWith('/service')) return void listener(request, response)
    void guard(request, response, async () => {
      await run(grantOf(request))
      response.end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  for (const path of [target, '/slow?partner=demo']) {
    const signals: AbortSignal[] = []
    work = ({ signal }) => {
      signals.push(signal)
      return Promise.resolve(1)
    }
    const [response] = await once(httpRequest({ port, path, headers, agent: false }).end(), 'response')
    await once(response.resume(), 'close')
    t.equal(response.statusCode, 200)
    t.equal(signals[0]!.aborted, false, path)

    work = ({ signal }) => {
      signals.push(signal)
      return once(signal, 'abort')
    }
    const lost = httpRequest({ port, path, headers, agent: false }).end()
    lost.on('error', () => undefined)
    await until(() => signals.length === 2, 'the handler to be called')
    lost.destroy()
    await until(() => signals[1]!.aborted, 'the signal to be aborted')
  }
})
